// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/livenessprobe"
	"github.com/regatta-sh/regatta/controllers/nodepodprobe"
	"github.com/regatta-sh/regatta/controllers/podprobemarker"
)

// runsProbes reports whether node agents run probes.
func (p components) runsProbes() bool {
	return p.Gates.Enabled(features.PodProbeMarkerGate) || p.Gates.Enabled(features.EnhancedLivenessProbe)
}

// addProbeControllers adds the controllers of probes of pods, once there are their CRDs.
func (s *startup) addProbeControllers(ctx context.Context) {
	if !s.p.runsProbes() {
		return
	}
	for _, kind := range []string{"NodePodProbe", "PodProbeMarker"} {
		s.waitForKind(ctx, v1alpha1.GroupVersion.WithKind(kind), "no pod is probed")
	}
	if ctx.Err() != nil {
		return
	}
	if err := s.p.probesTo(); err != nil {
		klog.ErrorS(err, "Pods are not probed")
	}
}

func (p components) probesTo() error {
	nodes := nodepodprobe.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.host.Engine(), p.recorderFor("nodepodprobe-controller"),
		nodepodprobe.WithWorkers(p.NodePodProbeWorkers), nodepodprobe.WithWindow(p.writes), nodepodprobe.WithKicks(p.events.workloads["NodePodProbe"]), nodepodprobe.WithRateLimiter(p.rateLimiter()),
		nodepodprobe.WithMarkers(p.Gates.Enabled(features.PodProbeMarkerGate)), nodepodprobe.WithLiveness(p.Gates.Enabled(features.EnhancedLivenessProbe)))
	if err := nodes.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the NodePodProbe controller: %w", err)
	}
	if p.Gates.Enabled(features.EnhancedLivenessProbe) {
		r := livenessprobe.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.recorderFor("livenessprobe-controller"), p.webhooks.agents,
			livenessprobe.WithWorkers(p.NodePodProbeWorkers), livenessprobe.WithRateLimiter(p.rateLimiter()))
		if err := r.SetupWithManager(p.mgr); err != nil {
			return fmt.Errorf("adding the controller of liveness probes: %w", err)
		}
	}
	if !p.Gates.Enabled(features.PodProbeMarkerGate) {
		return nil
	}
	markers := podprobemarker.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.host.Engine(), p.recorderFor("podprobemarker-controller"),
		podprobemarker.WithWorkers(p.PodProbeMarkerWorkers), podprobemarker.WithRateLimiter(p.rateLimiter()),
		podprobemarker.WithServerless(p.Gates.Enabled(features.EnablePodProbeMarkerOnServerless)))
	if err := markers.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the PodProbeMarker controller: %w", err)
	}
	return nil
}
