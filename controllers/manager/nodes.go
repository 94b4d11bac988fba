// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/accounting"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/containerrecreaterequest"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/imagelistpulljob"
	"github.com/regatta-sh/regatta/controllers/imagepulljob"
	"github.com/regatta-sh/regatta/controllers/nodeimage"
	"github.com/regatta-sh/regatta/engine/decision/node"
)

// servedOf are those of some kinds whose feature gates are on.
func (p components) servedOf(kinds ...string) []string {
	return slices.DeleteFunc(kinds, func(kind string) bool { return !gatedkinds.IsServed(kind, p.Gates.Enabled) })
}

// nodeKinds are the kinds that are carried out by node agents and have a controller.
func (p components) nodeKinds() []string {
	return p.servedOf("ContainerRecreateRequest", "NodeImage", "ImagePullJob", "ImageListPullJob")
}

// addNodeControllers adds the controllers of what node agents carry out, once there are their CRDs.
func (s *startup) addNodeControllers(ctx context.Context) {
	s.addKindControllers(ctx, s.p.nodeKinds(), map[string]func(context.Context) error{
		"ContainerRecreateRequest": s.p.restartsTo, "NodeImage": s.p.nodeImagesTo, "ImagePullJob": s.p.imagePullJobsTo,
		"ImageListPullJob": s.p.imageListPullJobsTo,
	})
}

// addKindControllers adds the controllers of some kinds, each once there is its CRD.
func (s *startup) addKindControllers(ctx context.Context, kinds []string, add map[string]func(context.Context) error) {
	for _, kind := range kinds {
		gvk := kruise.GroupVersion.WithKind(kind)
		if !s.p.mgr.GetScheme().Recognizes(gvk) {
			gvk.Version = v1alpha1.GroupVersion.Version
		}
		s.waitForKind(ctx, gvk, "no "+kind+" is carried out")
		if ctx.Err() != nil {
			return
		}
		if err := add[kind](ctx); err != nil {
			klog.ErrorS(err, "A kind is not carried out", "kind", kind)
		}
	}
}

func (p components) nodeImagesTo(context.Context) error {
	r := nodeimage.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.recorderFor("nodeimage-controller"),
		nodeimage.WithWorkers(p.NodeImageWorkers), nodeimage.WithCreationDelay(p.NodeImageCreationDelay), nodeimage.WithRateLimiter(p.rateLimiter()))
	if err := r.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the NodeImage controller: %w", err)
	}
	return nil
}

func (p components) imagePullJobsTo(ctx context.Context) error {
	r := imagepulljob.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.host.Engine(), p.recorderFor("imagepulljob-controller"),
		imagepulljob.WithWorkers(p.ImagePullJobWorkers), imagepulljob.WithAlwaysTTL(p.AlwaysNodeImageTTL), imagepulljob.WithRateLimiter(p.rateLimiter()),
		imagepulljob.WithStatusEvery(statusEvery))
	if err := r.SetupWithManager(ctx, p.mgr); err != nil {
		return fmt.Errorf("adding the ImagePullJob controller: %w", err)
	}
	return nil
}

func (p components) imageListPullJobsTo(context.Context) error {
	r := imagelistpulljob.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.recorderFor("imagelistpulljob-controller"), imagelistpulljob.WithRateLimiter(p.rateLimiter()))
	if err := r.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the ImageListPullJob controller: %w", err)
	}
	return nil
}

func (p components) restartsTo(ctx context.Context) error {
	opts := []containerrecreaterequest.Option{
		containerrecreaterequest.WithWorkers(p.CRRWorkers), containerrecreaterequest.WithRateLimiter(p.rateLimiter()),
	}
	if p.countsBudgets() {
		opts = append(opts, containerrecreaterequest.WithBudgets(p.budgetsOf))
	}
	if p.Gates.Enabled(features.EnhancedLivenessProbe) && p.countsBudgets() {
		opts = append(opts, containerrecreaterequest.WithCharge(p.budgeting.ledger.NewUpdateCheck(accounting.ManagerUser(p.webhooks.namespace), p.budgeting.recent, p.webhookPatience())))
	}
	if p.agents != nil {
		opts = append(opts, containerrecreaterequest.WithAgents(p.agents.HasAgent))
	}
	r := containerrecreaterequest.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.host.Engine(), p.recorderFor("containerrecreaterequest-controller"), opts...)
	if err := r.SetupWithManager(ctx, p.mgr); err != nil {
		return fmt.Errorf("adding the ContainerRecreateRequest controller: %w", err)
	}
	return nil
}

// budgetsOf are the budgets of a pod as policies see them.
func (p components) budgetsOf(ctx context.Context, pod *corev1.Pod) ([]node.Budget, error) {
	names, err := p.budgeting.finder.FindForPod(ctx, pod.Namespace, pod)
	if err != nil {
		return nil, err
	}
	var out []node.Budget
	for _, name := range names {
		b := &policyv1beta1.PodUnavailableBudget{}
		if err := p.mgr.GetClient().Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, b); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return nil, fmt.Errorf("reading PodUnavailableBudget %s: %w", name, err)
		}
		out = append(out, node.Budget{
			Name: name, Allowed: int(b.Status.UnavailableAllowed), Desired: int(b.Status.DesiredAvailable), Current: int(b.Status.CurrentAvailable),
		})
	}
	return out, nil
}
