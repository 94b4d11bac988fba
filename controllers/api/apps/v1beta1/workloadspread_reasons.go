// SPDX-License-Identifier: Apache-2.0

package v1beta1

// WorkloadSpreadSubsetSchedulable is the type of the condition of a subset that is False while it has no room.
const WorkloadSpreadSubsetSchedulable = "Schedulable"

// Reasons of WorkloadSpreadSubsetSchedulable.
const (
	// WorkloadSpreadPodUnschedulableReason is of False: pods found no node in time.
	WorkloadSpreadPodUnschedulableReason = "PodUnschedulable"
	// WorkloadSpreadSufficientReason is of True.
	WorkloadSpreadSufficientReason = "Sufficient"
)

// Reasons of events on a WorkloadSpread. The last is Normal, the others are Warnings.
const (
	WorkloadSpreadCreatePodFailedReason            = "CreatePodFailed"
	WorkloadSpreadDeletePodFailedReason            = "DeletePodFailed"
	WorkloadSpreadPatchPodDeletionCostFailedReason = "PatchPodDeletionCostFailed"
	WorkloadSpreadRecoverSchedulableReason         = "RecoverSchedulable"
)
