// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/persistentpodstate"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// spreadDeps are the parts that the webhook of pods and the controller of WorkloadSpreads share.
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
	s.book = spread.NewRecorder(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.host.Engine(), s.targets, s.versions)
	return s, nil
}

// newPodStateController makes the controller of PersistentPodStates.
func (p components) newPodStateController(_ context.Context, d reconcile.Deps) (reconcile.Controller, error) {
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(p.mgr.GetConfig(), p.mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for what can be scaled: %w", err)
	}
	return persistentpodstate.New(d, persistentpodstate.Options{
		Finder:        scale.NewFinder(d.Client, kinds),
		Configuration: rules.Configuration{Reader: d.Live, Namespace: p.webhooks.namespace},
		StartOrdinal:  p.Gates.Enabled(features.StatefulSetStartOrdinal),
	}), nil
}
