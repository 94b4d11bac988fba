// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/controllers/accounting"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/launchpriority"
	"github.com/regatta-sh/regatta/controllers/podreadiness"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/protection"
	webhookpod "github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/steps"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
)

// budgetDeps is what keeps PodUnavailableBudgets.
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

// countsBudgets reports whether any gate has budgets count for something.
func (p components) countsBudgets() bool {
	g := p.protectionGates()
	return g.BudgetDelete || g.BudgetUpdate
}

// podsTo adds the webhooks of pods (PA-04). What is asked of policies is
// answered once there are any.
func (p components) podsTo(server webhook.Server, decided <-chan struct{}) {
	if !p.Gates.Enabled(features.PodWebhook) {
		return
	}
	for path, handler := range p.podHandlers(decided) {
		server.Register(path, handler)
	}
}

// podSteps are what these webhooks do.
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

// addBudgetController adds the controller of budgets once there is their CRD.
func (s *startup) addBudgetController(ctx context.Context) {
	if !s.p.countsBudgets() {
		return
	}
	s.waitForKind(ctx, policyv1beta1.GroupVersion.WithKind("PodUnavailableBudget"), "no budget has a status")
	if ctx.Err() != nil {
		return
	}
	if err := s.p.budgetsTo(ctx); err != nil {
		klog.ErrorS(err, "PodUnavailableBudgets have no status, so that they hold nothing back")
	}
}

func (p components) budgetsTo(ctx context.Context) error {
	if err := podunavailablebudget.AddIndexes(ctx, p.mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r := podunavailablebudget.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.budgeting.finder, p.recorderFor("podunavailablebudget-controller"),
		podunavailablebudget.WithWorkers(p.PodUnavailableBudgetWorkers),
		podunavailablebudget.WithRateLimiter(p.rateLimiter()),
		podunavailablebudget.WithNamespaces(p.guards.Writer))
	if err := r.SetupWithManager(ctx, p.mgr); err != nil {
		return fmt.Errorf("adding the PodUnavailableBudget controller: %w", err)
	}
	return nil
}

// readinessTo adds the controllers that open the readiness gates and the barriers which the
// webhook of pods adds.
func (p components) readinessTo() error {
	if !p.Gates.Enabled(features.PodWebhook) {
		return nil
	}
	if err := (&launchpriority.Reconciler{
		Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Events: p.recorderFor("container-launch-priority-controller"), Now: time.Now,
	}).SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the container launch priority controller: %w", err)
	}
	if err := (&podreadiness.Reconciler{Client: p.mgr.GetClient(), Events: p.recorderFor("pod-readiness-controller"), Now: time.Now}).SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the pod readiness controller: %w", err)
	}
	return nil
}
