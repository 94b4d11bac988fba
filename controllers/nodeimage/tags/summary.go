// SPDX-License-Identifier: Apache-2.0

package tags

import (
	"cmp"
	"fmt"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// SummarizeImages returns what the conditions of package kstatus say of a NodeImage. A tag whose pull has failed is not pulled again
// before its version changes.
func SummarizeImages(s *kruise.NodeImageStatus) kstatus.Summary {
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
