// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/sidecarset"
	"github.com/regatta-sh/regatta/controllers/sidecarset/matching"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/sidecars"
)

// sidecarSets adds the controller of SidecarSets once there is their CRD. SidecarSets own no pods, so they are not in the table of
// the kinds that do.
func (s *startup) sidecarSets(ctx context.Context) {
	s.waitForKind(ctx, kruise.GroupVersion.WithKind("SidecarSet"), "no SidecarSet has a status or is updated")
	if ctx.Err() != nil {
		return
	}
	if err := s.p.sidecarSetsTo(ctx); err != nil {
		klog.ErrorS(err, "SidecarSets have no status and are not updated")
	}
}

func (p components) sidecarSetsTo(ctx context.Context) error {
	events := p.recorderFor("sidecarset-controller")
	var opts []sidecarset.Option
	if p.Gates.Enabled(features.PodWebhook) { // else no pod is given anything
		missed, err := p.newMissedFinder(ctx)
		if err != nil {
			return err
		}
		opts = append(opts, sidecarset.WithMissed(missed))
	}
	return p.addRolloutController(p.mgr, sidecarset.New(p.mgr.GetClient(), p.webhooks.namespace, events, opts...), events, p.SidecarSetWorkers)
}

// newMissedFinder finds pods that were not given what they should have been, by the decisions of the webhook of pods.
func (p components) newMissedFinder(ctx context.Context) (*sidecarset.MissedPodFinder, error) {
	if err := p.mgr.GetFieldIndexer().IndexField(ctx, &kruise.SidecarSet{}, matching.KeysIndex, matching.IndexKeys); err != nil {
		return nil, fmt.Errorf("indexing SidecarSets by their selectors: %w", err)
	}
	lacks := sidecarset.NewLacks(p.mgr.GetClient())
	if err := metrics.Registry.Register(lacks); err != nil {
		return nil, fmt.Errorf("registering regatta_sidecarset_missed_pods: %w", err)
	}
	judge := sidecars.NewJudge(sidecars.Options{
		Cached: p.mgr.GetClient(), Live: p.mgr.GetAPIReader(), Engine: p.host.Engine(), Namespace: p.webhooks.namespace,
	})
	return &sidecarset.MissedPodFinder{Given: judge.DecideSidecars, Sent: p.guards.Config.GuardsNamespace, Live: p.mgr.GetAPIReader(), Count: lacks.SetCounts}, nil
}
