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
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/controllers/workloadspread"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// subsetKinds are the kinds that say which nodes pods go to and have a controller.
func (p components) subsetKinds() []string {
	return p.servedOf("UnitedDeployment", "PersistentPodState", "WorkloadSpread")
}

// addSubsetControllers adds the controllers of what says which nodes pods go to, once there are their CRDs.
func (s *startup) addSubsetControllers(ctx context.Context) {
	s.addKindControllers(ctx, s.p.subsetKinds(), map[string]func(context.Context) error{
		"UnitedDeployment": s.p.unitedDeploymentsTo, "PersistentPodState": s.p.persistentPodStatesTo, "WorkloadSpread": s.p.workloadSpreadsTo,
	})
}

func (p components) unitedDeploymentsTo(ctx context.Context) error {
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

// spreadDeps is what the webhook of pods and the controller of WorkloadSpreads share.
type spreadDeps struct {
	targets  *spread.Targets
	book     *spread.Recorder
	versions spread.Versions
	awaited  *webhookconfig.PendingObjects
}

func (p components) newSpreadDeps() (*spreadDeps, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(p.mgr.GetConfig(), p.mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for what can be scaled: %w", err)
	}
	s := &spreadDeps{versions: spread.ParseVersions(p.VersionedSpreads), awaited: &webhookconfig.PendingObjects{Live: p.mgr.GetAPIReader()}}
	cached := podscope.Reader{Reader: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Claims: s.awaited.ReadClaims}
	s.targets = spread.NewTargets(cached, p.mgr.GetAPIReader(), scale.NewFinder(p.mgr.GetClient(), d), p.webhooks.namespace, time.Now)
	s.book = spread.NewBook(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.host.Engine(), s.targets, s.versions)
	return s, nil
}

func (p components) workloadSpreadsTo(context.Context) error {
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

func (p components) persistentPodStatesTo(context.Context) error {
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
