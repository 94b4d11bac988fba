// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/persistentpodstate"
	"github.com/regatta-sh/regatta/controllers/uniteddeployment"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/reach"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/controllers/workloadspread"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// subsetKinds are the kinds that say which nodes pods go to and have a controller.
func (p parts) subsetKinds() []string {
	return p.servedOf("UnitedDeployment", "PersistentPodState", "WorkloadSpread")
}

// subsets adds the controllers of what says which nodes pods go to, once there are their CRDs.
func (s *startup) subsets(ctx context.Context) {
	s.each(ctx, s.p.subsetKinds(), map[string]func(context.Context) error{
		"UnitedDeployment": s.p.unitedDeploymentsTo, "PersistentPodState": s.p.persistentPodStatesTo, "WorkloadSpread": s.p.workloadSpreadsTo,
	})
}

func (p parts) unitedDeploymentsTo(ctx context.Context) error {
	clients := rollout.Clients{Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Events: p.recorderFor(kruise.UnitedDeploymentComponent)}
	r := uniteddeployment.New(clients, p.host.Engine(),
		uniteddeployment.WithWorkers(p.UnitedDeploymentWorkers),
		uniteddeployment.WithRounds(p.rounds),
		uniteddeployment.WithStatusEvery(statusEvery),
		uniteddeployment.WithKicks(p.events.workloads["UnitedDeployment"]),
		uniteddeployment.WithRateLimiter(p.rateLimiter()))
	if err := r.SetupWithManager(ctx, p.mgr); err != nil {
		return fmt.Errorf("adding the UnitedDeployment controller: %w", err)
	}
	return nil
}

// spreading is what the webhook of pods and the controller of WorkloadSpreads share.
type spreading struct {
	targets  *spread.Targets
	book     *spread.Book
	versions spread.Versions
	awaited  *webhookconfig.Awaited
}

func (p parts) spread() (*spreading, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(p.mgr.GetConfig(), p.mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for what can be scaled: %w", err)
	}
	s := &spreading{versions: spread.ParseVersions(p.VersionedSpreads), awaited: &webhookconfig.Awaited{Live: p.mgr.GetAPIReader()}}
	cached := reach.Reader{Reader: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Claims: s.awaited.Claims}
	s.targets = spread.NewTargets(cached, p.mgr.GetAPIReader(), scale.NewFinder(p.mgr.GetClient(), d), p.webhooks.namespace, time.Now)
	s.book = spread.NewBook(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.host.Engine(), s.targets, s.versions)
	return s, nil
}

func (p parts) workloadSpreadsTo(context.Context) error {
	r := workloadspread.New(p.mgr.GetClient(), p.recorderFor(kruise.WorkloadSpreadComponent), p.spreading.targets, p.spreading.book,
		workloadspread.WithWorkers(p.WorkloadSpreadWorkers),
		workloadspread.WithVersions(p.spreading.versions),
		workloadspread.WithRounds(p.rounds),
		workloadspread.WithEngine(p.host.Engine()),
		workloadspread.WithStatusEvery(statusEvery),
		workloadspread.WithRateLimiter(p.rateLimiter()))
	if err := r.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the WorkloadSpread controller: %w", err)
	}
	return nil
}

func (p parts) persistentPodStatesTo(context.Context) error {
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(p.mgr.GetConfig(), p.mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for what can be scaled: %w", err)
	}
	return persistentpodstate.SetupWithManager(p.mgr, persistentpodstate.Options{
		Client: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Finder: scale.NewFinder(p.mgr.GetClient(), kinds),
		Configuration: rules.Configuration{Reader: p.mgr.GetAPIReader(), Namespace: p.webhooks.namespace},
		StartOrdinal:  p.Gates.Enabled(features.StatefulSetStartOrdinal), Workers: p.PersistentPodStateWorkers, Limiter: p.rateLimiter,
	})
}
