// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/policybundle"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// startup adds the webhooks once the certificates exist, and the controllers once their kinds are
// installed.
type startup struct {
	p            components
	certificates *certs.Certificates
	bundles      *policybundle.Reconciler
	// serving is closed when the webhooks are registered with their server.
	serving chan struct{}
}

var _ manager.LeaderElectionRunnable = &startup{}

// tryAgain is how soon a step that waits for another client, such as the installation of a CRD, is tried again.
const tryAgain = 3 * time.Second

// NeedLeaderElection is false: every replica serves webhooks, and the manager
// itself lets only the leader reconcile.
func (s *startup) NeedLeaderElection() bool { return false }

// Start adds one part after the other. The webhooks that validate users' objects come first, as they
// need no policies. Nothing is decided before all bundles are loaded.
func (s *startup) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(s.p.WebhookTimeout):
		return s.tooLate()
	case <-s.certificates.Ready():
	}
	if err := s.p.webhooksTo(s.p.mgr, s.bundles.Publisher); err != nil {
		return err
	}
	s.p.protectionTo(s.p.mgr.GetWebhookServer(), s.p.host.Ready())
	s.p.podsTo(s.p.mgr.GetWebhookServer(), s.p.host.Ready())
	close(s.serving)
	loaded, err := s.loadPolicies(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.addGuards(ctx); err != nil {
		return err
	}
	s.addControllers(ctx, false)
	for _, w := range kinds.ActingWorkloads() {
		s.waitForKind(ctx, w.GroupVersionKind, w.Kind+"s are not reconciled")
	}
	if !loaded { // CRDs are installed one after the other
		if loaded, err = s.loadPolicies(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	for _, row := range s.p.listWorkloadControllers() {
		if err := s.p.addController(ctx, row); err != nil {
			return err
		}
	}
	s.addControllers(ctx, true)
	recovery.GoUntilDone(ctx, "startup", func(ctx context.Context) {
		s.addGatedKinds(ctx, gatedkinds.ListUnserved(s.p.mgr.GetScheme(), s.p.Gates.Enabled))
	})
	if !loaded { // a controller whose CRD is missing is left out (PL-04)
		for _, kind := range []string{"ClusterPolicyBundle", "PolicyBundle"} {
			s.waitForKind(ctx, policyv1alpha1.GroupVersion.WithKind(kind), "only the built-in policies decide")
		}
		if _, err := s.loadPolicies(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// addControllers adds the controllers that decide, or those that do not, each once its kinds are installed.
func (s *startup) addControllers(ctx context.Context, decides bool) {
	for _, row := range s.p.listControllers() {
		if row.decides != decides || !s.p.isEnabled(row) {
			continue
		}
		recovery.GoUntilDone(ctx, "startup", func(ctx context.Context) {
			for _, kind := range s.p.requiredKinds(row) {
				s.waitForKind(ctx, kind, row.without)
			}
			if ctx.Err() != nil {
				return
			}
			if err := s.p.addController(ctx, row); err != nil {
				klog.ErrorS(err, "A controller does not run", "controller", row.name, "so", row.without)
			}
		})
	}
}

func (s *startup) tooLate() error {
	why := s.certificates.NotReadyError()
	if why == nil {
		return fmt.Errorf("the certificates of the webhooks were not ready after %s, which is --webhook-initialize-timeout: their CA is not in the webhook configurations yet; the log of cert-rotation may say why", s.p.WebhookTimeout)
	}
	return fmt.Errorf("the certificates of the webhooks were not ready after %s, which is --webhook-initialize-timeout: %w", s.p.WebhookTimeout, why)
}

// isInstalled asks the API server again for a kind that it did not have before.
func (s *startup) isInstalled(kind schema.GroupVersionKind) bool {
	found, err := s.kindExists(kind)
	if err != nil {
		klog.ErrorS(err, "Asking for a kind", "kind", kind.Kind)
	}
	return found
}

func (s *startup) kindExists(kind schema.GroupVersionKind) (bool, error) {
	_, err := s.p.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// waitForKind waits until a kind is installed or ctx is done.
func (s *startup) waitForKind(ctx context.Context, kind schema.GroupVersionKind, until string) {
	told := false
	_ = wait.PollUntilContextCancel(ctx, tryAgain, true, func(context.Context) (bool, error) { // the caller checks ctx
		if s.isInstalled(kind) {
			return true, nil
		}
		if !told {
			klog.ErrorS(nil, "A CRD is not installed; waiting for it", "crd", strings.ToLower(kind.Kind)+"s."+kind.Group, "until then", until)
		}
		told = true
		return false, nil
	})
}

// addGatedKinds adds the controllers that write Stalled to objects of kinds whose feature gates are off. A kind whose CRD is not
// installed has no users. It is checked again, less and less often, since CRDs are installed one after the other.
func (s *startup) addGatedKinds(ctx context.Context, kinds []schema.GroupVersionKind) {
	mgr := s.p.mgr
	for delay := tryAgain; len(kinds) > 0; delay = min(2*delay, time.Minute) {
		kinds = slices.DeleteFunc(kinds, func(kind schema.GroupVersionKind) bool {
			if !s.isInstalled(kind) {
				return false
			}
			r := &gatedkinds.Reconciler{
				Deps: s.p.newDeps(controllerRow{name: "gated-kinds-controller", workers: 1, retriesAlone: true}), Kind: kind, Message: gatedkinds.DescribeMissing(kind.Kind, s.p.Gates.Enabled),
			}
			if err := r.SetupWithManager(ctx, mgr); err != nil {
				klog.ErrorS(err, "No condition says that a feature gate of the kind is off", "kind", kind.Kind)
			}
			return true
		})
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}
