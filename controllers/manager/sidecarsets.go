// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"k8s.io/klog/v2"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset"
)

// sidecarSets adds the controller of SidecarSets once there is their CRD. SidecarSets own no pods, so they are not in the table of
// the kinds that do.
func (s *startup) sidecarSets(ctx context.Context) {
	s.await(ctx, kruise.GroupVersion.WithKind("SidecarSet"), "no SidecarSet has a status or is updated")
	if ctx.Err() != nil {
		return
	}
	if err := s.p.sidecarSetsTo(); err != nil {
		klog.ErrorS(err, "SidecarSets have no status and are not updated")
	}
}

func (p parts) sidecarSetsTo() error {
	events := p.mgr.GetEventRecorderFor("sidecarset-controller")
	return p.controller(p.mgr, sidecarset.New(p.mgr.GetClient(), p.webhooks.namespace, events), events, p.SidecarSetWorkers)
}
