// SPDX-License-Identifier: Apache-2.0

package tags

import (
	"cmp"
	"fmt"
	"time"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// SetSummary sets the conditions of package kstatus in the status of a NodeImage, by its counts. The node and the manager call it before they
// write counts, so that the conditions cost no write of their own. They have no observedGeneration: a job that ends takes its reference from
// the specs of all its nodes, and no node is to write its status for that.
func SetSummary(s *kruise.NodeImageStatus, now time.Time) {
	kstatus.SetConditions(s, summarizeImages(s), 0, now)
}

// summarizeImages sums up the counts of a node. A tag whose pull has failed is not pulled again before its version changes.
func summarizeImages(s *kruise.NodeImageStatus) kstatus.Summary {
	if first := s.FirstSyncStatus; first != nil && first.Status == kruise.SyncStatusFailed {
		return kstatus.NewReconciling(kruise.ImageRuntimeMissingReason, cmp.Or(first.Message, "The node cannot pull images."))
	}
	text := fmt.Sprintf("%d of %d tags are pulled, and %d have failed", s.Succeeded, s.Desired, s.Failed)
	switch {
	case s.Succeeded+s.Failed < s.Desired:
		return kstatus.NewReconciling(kruise.ProgressingReason, text)
	case s.Failed > 0:
		return kstatus.NewStalled(kruise.PullFailedReason, text)
	}
	return kstatus.NewReady(kruise.ImagesPulledReason, text)
}
