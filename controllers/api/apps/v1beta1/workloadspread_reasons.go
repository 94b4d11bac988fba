// SPDX-License-Identifier: Apache-2.0

package v1beta1

// WorkloadSpreadComponent is the source of the events of a WorkloadSpread.
const WorkloadSpreadComponent = "workloadspread-controller"

// WorkloadSpreadPlacing is the type of the condition of a WorkloadSpread that is False while new pods may go to no subset, or
// pods are of one that the spec does not have or that selects no node.
const WorkloadSpreadPlacing = "Placing"

// Reasons of WorkloadSpreadPlacing.
const (
	// WorkloadSpreadPlacingReason is of True.
	WorkloadSpreadPlacingReason = "Placing"
	// WorkloadSpreadTargetNotFoundReason is of False: there is no such workload.
	WorkloadSpreadTargetNotFoundReason = TargetNotFoundReason
	// WorkloadSpreadSubsetsFullReason is of False: no subset takes another pod.
	WorkloadSpreadSubsetsFullReason = "SubsetsFull"
	// WorkloadSpreadUnknownSubsetReason is of False: pods name a subset that the spec does not have.
	WorkloadSpreadUnknownSubsetReason = "UnknownSubset"
	// WorkloadSpreadNoNodesReason is of False: a subset has pods and selects no node, as one that names a zone wrongly.
	WorkloadSpreadNoNodesReason = "NoNodes"
)

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
	WorkloadSpreadDeletePodHeldReason              = "DeletePodHeld" // it is ours
	WorkloadSpreadPatchPodDeletionCostFailedReason = "PatchPodDeletionCostFailed"
	WorkloadSpreadRecoverSchedulableReason         = "RecoverSchedulable"
)
