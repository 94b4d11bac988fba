// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/sidecarterminator"
)

// addTerminatorController adds the controller that ends the sidecars of jobs, if its gate is on, once
// there is the CRD of ContainerRecreateRequests.
func (s *startup) addTerminatorController(ctx context.Context) {
	if !s.p.Gates.Enabled(features.SidecarTerminator) {
		return
	}
	s.waitForKind(ctx, kruise.GroupVersion.WithKind("ContainerRecreateRequest"), "no sidecar ends with its job")
	if ctx.Err() != nil {
		return
	}
	if err := s.p.terminatorTo(); err != nil {
		klog.ErrorS(err, "No sidecar ends with its job")
	}
}

func (p components) terminatorTo() error {
	r := sidecarterminator.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.host.Engine(), p.recorderFor("sidecarterminator-controller"),
		sidecarterminator.WithWorkers(p.SidecarTerminatorWorkers), sidecarterminator.WithRateLimiter(p.rateLimiter()))
	if err := r.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the SidecarTerminator: %w", err)
	}
	return nil
}
