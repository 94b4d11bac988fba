// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/regatta-sh/regatta/controllers/accounting"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/kinds/adapters"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/sidecarset"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/sidecars"
	"github.com/regatta-sh/regatta/controllers/workload/predownload"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// statusInterval is the time between two writes of a workload's status while its pods move.
const statusInterval = 500 * time.Millisecond

// newWorkloadController makes the controller of a kind of workloads.
func (p components) newWorkloadController(w kinds.Workload, d reconcile.Deps) (reconcile.Controller, error) {
	kind, err := adapters.New(w, adapters.Settings{On: p.Gates.Enabled, ExcludePreparingDelete: p.ExcludePreparingDelete, PodsByScheduler: p.PodsByScheduler})
	if err != nil {
		return nil, fmt.Errorf("making the adapter of %ss: %w", w.Kind, err)
	}
	return p.newRolloutController(kind, d), nil
}

// newRolloutController makes a controller of the rollout loop.
func (p components) newRolloutController(kind rollout.Kind, d reconcile.Deps) reconcile.Controller {
	on, name := p.Gates.Enabled, kind.WorkloadType().Kind
	var budget rollout.Budget
	if on(features.PodUnavailableBudgetUpdateGate) {
		budget = p.budgeting.ledger.NewUpdateCheck(accounting.ManagerUser(p.webhooks.namespace), p.budgeting.recent, p.webhookPatience())
	}
	opts := p.leaks.countLeaksOf(name)
	ahead := on(features.PreDownloadImageForInPlaceUpdate)
	if name == "DaemonSet" {
		ahead = on(features.PreDownloadImageForDaemonSetUpdate)
	}
	if k, ok := kind.(predownload.Kind); ok && ahead {
		opts = append(opts, rollout.WithAhead(predownload.NewAheadFunc(k)))
	}
	if p.agents != nil {
		opts = append(opts, rollout.WithAgents(p.agents.HasAgent))
	}
	return rollout.New(kind, d, append(opts,
		rollout.WithWindow(p.writes),
		rollout.WithRanker(p.ranker),
		rollout.WithServices(),
		rollout.WithBudget(budget),
		rollout.WithExpectationTimeout(p.ExpectationTimeout),
		rollout.WithGates(rollout.GatesOf(on)))...)
}

// sidecarSetController is the name of the controller of SidecarSets. They own no pods, so they are not in the table of the kinds
// that do.
const sidecarSetController = "sidecarset-controller"

// newSidecarSetController makes the controller of SidecarSets.
func (p components) newSidecarSetController(ctx context.Context, d reconcile.Deps) (reconcile.Controller, error) {
	var opts []sidecarset.Option
	if p.Gates.Enabled(features.PodWebhook) { // otherwise no pod gets anything at its creation
		missed, err := p.newMissedFinder(ctx)
		if err != nil {
			return nil, err
		}
		opts = append(opts, sidecarset.WithMissed(missed))
	}
	return p.newRolloutController(sidecarset.New(d.Client, p.webhooks.namespace, d.Events, opts...), d), nil
}

// newMissedFinder makes the finder of pods that were created without containers that they should have been given, by
// the decisions of the webhook of pods.
func (p components) newMissedFinder(ctx context.Context) (*sidecarset.MissedPodFinder, error) {
	if err := p.mgr.GetFieldIndexer().IndexField(ctx, &kruise.SidecarSet{}, matching.KeysIndex, matching.IndexKeys); err != nil {
		return nil, fmt.Errorf("indexing SidecarSets by their selectors: %w", err)
	}
	lacks := sidecarset.NewMissingSidecarsMetric(p.mgr.GetClient())
	if err := metrics.Registry.Register(lacks); err != nil {
		return nil, fmt.Errorf("registering regatta_sidecarset_missed_pods: %w", err)
	}
	judge := sidecars.NewJudge(sidecars.Options{
		Cached: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Engine: p.host.Engine(), Namespace: p.webhooks.namespace,
	})
	return &sidecarset.MissedPodFinder{Given: judge.DecideSidecars, Sent: p.guards.Config.GuardsNamespace, Live: p.mgr.GetAPIReader(), Count: lacks.SetCounts}, nil
}
