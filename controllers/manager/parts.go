// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/certs"
	"github.com/regatta-sh/regatta/controllers/cloneset"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/serve"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/ledger"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/controllers/webhook/convert"
	webhookpod "github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/server"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// parts are what the manager is made of.
type parts struct {
	*Options
	mgr    ctrl.Manager
	host   *policyhost.Host
	rounds *explain.Store

	events    *policyEvents
	guarding  *guarding
	budgeting *budgeting
	steps     webhookpod.Steps
	guards    *webhookconfig.Controller
}

// add adds everything to the manager. Certificates come first: what writes
// objects that go through our webhooks waits for them.
func (p parts) add(ctx context.Context) error {
	certificates, err := certs.Setup(p.mgr, certs.Config{
		Secret: types.NamespacedName{Namespace: p.webhooks.namespace, Name: p.webhooks.secret},
		Dir:    p.webhooks.certDir, Service: p.webhooks.service, Host: p.webhooks.host,
		CRDs: converting(p.mgr.GetScheme()), RenewBefore: p.webhooks.renewBefore,
		External: p.Gates.Enabled(features.EnableExternalCerts),
	}, p.mgr.GetAPIReader())
	if err != nil {
		return err
	}
	if p.budgeting, err = p.budgeted(); err != nil {
		return err
	}
	if p.steps, err = p.podSteps(); err != nil {
		return err
	}
	if p.guards, err = p.configured(p.steps); err != nil {
		return err
	}
	s := &startup{p: p, certificates: certificates, serving: make(chan struct{})}
	if err := p.health(s); err != nil {
		return err
	}
	if err := addLeaderGauge(p.mgr); err != nil {
		return err
	}
	if err := rollout.Index(ctx, p.mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := p.explainTo(ctx, certificates.Ready()); err != nil {
		return err
	}
	return p.mgr.Add(s)
}

// converting are the names of the CRDs that call us to be converted.
func converting(scheme *runtime.Scheme) []string {
	var out []string
	for _, r := range convert.Resources(scheme) {
		out = append(out, r.String())
	}
	return out
}

// explainTo serves the reasons of decisions, on every replica.
func (p parts) explainTo(ctx context.Context, ready <-chan struct{}) error {
	if p.DecisionsAddr == "0" {
		return nil
	}
	who, may, err := serve.Delegate(ctx, p.mgr.GetConfig())
	if err != nil {
		return err
	}
	return p.mgr.Add(&serve.Server{
		Addr: p.DecisionsAddr, CertDir: p.webhooks.certDir, Ready: ready, Store: p.rounds, Replica: p.host.Name(), Who: who, May: may,
		Records: p.host.Records(), Lines: p.host.Encoder(),
	})
}

func (p parts) controllersTo(mgr ctrl.Manager) error {
	on := p.Gates.Enabled
	var budget rollout.Budget
	if on(features.PodUnavailableBudgetUpdateGate) {
		budget = p.budgeting.ledger.Updates(ledger.Account(p.webhooks.namespace), p.budgeting.recent, p.webhookPatience())
	}
	for _, w := range kinds.Workloads() {
		c := rollout.Clients{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorderFor(w.Component)}
		err := p.start(mgr, w, c,
			rollout.WithRounds(p.rounds),
			rollout.WithKicks(p.events.workloads),
			rollout.WithRateLimiter(p.rateLimiter()),
			rollout.WithBudget(budget),
			rollout.WithExpectationTimeout(p.ExpectationTimeout),
			rollout.WithGates(rollout.GatesOf(on)))
		if err != nil {
			return fmt.Errorf("adding the %s controller: %w", w.Kind, err)
		}
	}
	return nil
}

// start starts the controller of a kind, with the options that all kinds have.
func (p parts) start(mgr ctrl.Manager, w kinds.Workload, c rollout.Clients, opts ...rollout.Option) error {
	switch w.Kind {
	case "CloneSet":
		kind := cloneset.Kind{Gates: cloneset.GatesOf(p.Gates.Enabled), ExcludePreparingDelete: p.ExcludePreparingDelete}
		return cloneset.SetupWithManager(cloneset.New(kind, c, p.host.Engine(), append(opts, rollout.WithWorkers(p.CloneSetWorkers))...), mgr)
	}
	return errors.New("there is none")
}

// rateLimiter is how fast what failed is tried again: each object slower and
// slower, all together not faster than the flags say.
func (p parts) rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](p.RateBaseDelay, p.RateMaxDelay),
		&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(rate.Limit(p.RateQPS), p.RateBucket)},
	)
}

func (p parts) webhooksTo(mgr ctrl.Manager) error {
	on := p.Gates.Enabled
	err := server.Register(mgr, server.Options{
		KeepTemplates:        on(features.TemplateNoDefaults),
		HostNetworkHostPorts: on(features.DefaultHostNetworkHostPortsInPodTemplates),
		PatchAnyMetadata:     on(features.SidecarSetPatchPodMetadataDefaultsAllowed),
		NoBudgets:            !p.countsBudgets(),
		Namespace:            p.webhooks.namespace,
	})
	if err != nil {
		return fmt.Errorf("adding the webhooks: %w", err)
	}
	return nil
}
