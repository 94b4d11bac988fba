// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/resourcedistribution"
)

// addDistributions adds the controller of ResourceDistributions, if its gate is on, once there
// is their CRD.
func (s *startup) addDistributions(ctx context.Context) {
	if !s.p.Gates.Enabled(features.ResourceDistributionGate) {
		return
	}
	s.waitForKind(ctx, kruise.GroupVersion.WithKind("ResourceDistribution"), "nothing is distributed")
	if ctx.Err() != nil {
		return
	}
	if err := s.p.distributionsTo(); err != nil {
		klog.ErrorS(err, "ResourceDistributions are not carried out")
	}
}

func (p components) distributionsTo() error {
	r := resourcedistribution.New(p.mgr.GetClient(), p.host.Engine(), p.recorderFor("resourcedistribution-controller"),
		resourcedistribution.WithWorkers(p.ResourceDistributionWorkers), resourcedistribution.WithRateLimiter(p.rateLimiter()))
	if err := r.SetupWithManager(p.mgr); err != nil {
		return fmt.Errorf("adding the ResourceDistribution controller: %w", err)
	}
	return nil
}
