// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/controllers/accounting"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/containerrecreaterequest"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	webhookpod "github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/steps"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/engine/decision/node"
)

// budgetDeps are the parts that enforce PodUnavailableBudgets.
type budgetDeps struct {
	ledger *accounting.Accountant
	finder *podunavailablebudget.Finder
	recent *protection.Recent
}

func (p components) newBudgetDeps() (*budgetDeps, error) {
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(p.mgr.GetConfig(), p.mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for what can be scaled: %w", err)
	}
	return &budgetDeps{
		ledger: accounting.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), accounting.NewEngineDecider(p.host.Engine()), accounting.WithResizes(p.Gates.Enabled(features.InPlacePodVerticalScaling))),
		recent: p.guarding.recent,
		finder: podunavailablebudget.NewFinder(p.mgr.GetClient(), scale.NewFinder(p.mgr.GetClient(), kinds)),
	}, nil
}

// webhookPatience is how long the webhooks of pods may take: an answer must come
// before the API server's own time is over, after which the failure policy decides.
func (o *Options) webhookPatience() time.Duration {
	return time.Duration(o.WebhookTimeoutSeconds)*time.Second - 500*time.Millisecond
}

// countsBudgets reports whether any feature gate makes budgets effective.
func (p components) countsBudgets() bool {
	g := p.protectionGates()
	return g.BudgetDelete || g.BudgetUpdate
}

// podsTo adds the webhooks of pods (PA-04). Requests that need policies are answered once policies are
// loaded.
func (p components) podsTo(server webhook.Server, decided <-chan struct{}) {
	if !p.Gates.Enabled(features.PodWebhook) {
		return
	}
	for path, handler := range p.podHandlers(decided) {
		server.Register(path, handler)
	}
}

// podSteps are the steps of these webhooks.
func (p components) podSteps() (webhookpod.Steps, error) {
	return steps.ListEnabled(p.Gates.Enabled, steps.Needs{
		Finder: p.budgeting.finder, Ledger: p.budgeting.ledger, Recent: p.guarding.recent, Reporter: p.guarding.reporter,
		Cached: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Engine: p.host.Engine(), Namespace: p.webhooks.namespace,
		Targets: p.spreading.targets, Book: p.spreading.book, Awaited: p.spreading.awaited.ReadClaims,
	})
}

func (p components) podHandlers(decided <-chan struct{}) map[string]http.Handler {
	mutator, validator := webhookpod.New(p.mgr.GetAPIReader(), p.steps, p.webhookPatience())
	mutate := protection.ServeWhenReady(decided, &webhook.Admission{Handler: mutator, WithContextFunc: podscope.WithToken})
	return map[string]http.Handler{
		webhookconfig.MutatePodPath:                      mutate,
		podscope.PathPrefix(webhookconfig.MutatePodPath): mutate,
		webhookconfig.ValidatePodPath:                    protection.ServeWhenReady(decided, &webhook.Admission{Handler: validator}),
	}
}

// newBudgetController makes the controller of PodUnavailableBudgets.
func (p components) newBudgetController(_ context.Context, d reconcile.Deps) (reconcile.Controller, error) {
	return podunavailablebudget.New(d, p.budgeting.finder, podunavailablebudget.WithNamespaces(p.guards.Writer)), nil
}

// newRestartController makes the controller of ContainerRecreateRequests.
func (p components) newRestartController(_ context.Context, d reconcile.Deps) (reconcile.Controller, error) {
	var opts []containerrecreaterequest.Option
	if p.countsBudgets() {
		opts = append(opts, containerrecreaterequest.WithBudgets(p.budgetsOf))
	}
	if p.Gates.Enabled(features.EnhancedLivenessProbe) && p.countsBudgets() {
		opts = append(opts, containerrecreaterequest.WithCharge(p.budgeting.ledger.NewUpdateCheck(accounting.ManagerUser(p.webhooks.namespace), p.budgeting.recent, p.webhookPatience())))
	}
	if p.agents != nil {
		opts = append(opts, containerrecreaterequest.WithAgents(p.agents.HasAgent))
	}
	return containerrecreaterequest.New(d, opts...), nil
}

// budgetsOf returns the budgets of a pod as policies see them.
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
