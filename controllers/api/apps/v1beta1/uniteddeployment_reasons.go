// SPDX-License-Identifier: Apache-2.0

package v1beta1

// UnitedDeploymentConditionType is the type of a condition of a UnitedDeployment.
type UnitedDeploymentConditionType string

const (
	// UnitedDeploymentSubsetProvisioned is True while there is one workload for each subset and no other.
	UnitedDeploymentSubsetProvisioned UnitedDeploymentConditionType = "SubsetProvisioned"
	// UnitedDeploymentSubsetUpdated is True once the last write of the subsets has succeeded.
	UnitedDeploymentSubsetUpdated UnitedDeploymentConditionType = "SubsetUpdated"
	// UnitedDeploymentSubsetFailure is there while a subset tells of a failure.
	UnitedDeploymentSubsetFailure UnitedDeploymentConditionType = "SubsetFailure"
	// UnitedDeploymentUpdated is True once all pods are of the updated revision.
	UnitedDeploymentUpdated UnitedDeploymentConditionType = "UnitedDeploymentUpdated"
	// UnitedDeploymentAllocationHeld is True while a policy leaves subsets as they are.
	UnitedDeploymentAllocationHeld UnitedDeploymentConditionType = "AllocationHeld"
	// UnitedDeploymentPlacing is False while a subset selects no node, has pods that find none, takes fewer pods than there
	// are replicas, or is not in the spec any more. It is there once it has been False.
	UnitedDeploymentPlacing UnitedDeploymentConditionType = "Placing"
)

// UnitedDeploymentComponent is the source of the events of a UnitedDeployment.
const UnitedDeploymentComponent = "uniteddeployment-controller"

// Reasons of conditions of a UnitedDeployment.
const (
	// UnitedDeploymentErrorReason is of UnitedDeploymentSubsetFailure.
	UnitedDeploymentErrorReason = "Error"
	// UnitedDeploymentRevisionUpdatingReason is of UnitedDeploymentUpdated=False.
	UnitedDeploymentRevisionUpdatingReason = "UnitedDeploymentRevisionUpdating"
	// UnitedDeploymentRevisionUpdatedReason is of UnitedDeploymentUpdated=True.
	UnitedDeploymentRevisionUpdatedReason = "UnitedDeploymentRevisionUpdated"
	// UnitedDeploymentPlacingReason is of UnitedDeploymentPlacing=True.
	UnitedDeploymentPlacingReason = "Placing"
	// UnitedDeploymentNoNodesReason is of UnitedDeploymentPlacing=False: a subset has pods and selects no node, as one that
	// names a zone wrongly.
	UnitedDeploymentNoNodesReason = "NoNodes"
	// UnitedDeploymentUnschedulableReason is of UnitedDeploymentPlacing=False: pods of a subset have found no node in time.
	UnitedDeploymentUnschedulableReason = "PodUnschedulable"
	// UnitedDeploymentSubsetsFullReason is of UnitedDeploymentPlacing=False: the subsets take fewer pods than there are replicas.
	UnitedDeploymentSubsetsFullReason = "SubsetsFull"
	// UnitedDeploymentUnknownSubsetReason is of UnitedDeploymentPlacing=False: a workload of a subset that is gone is kept.
	UnitedDeploymentUnknownSubsetReason = "UnknownSubset"
	// UnitedDeploymentWaitingForSubsetsReason is of UnitedDeploymentPlacing=False: workloads that are to go stay until pods of the
	// subsets are available.
	UnitedDeploymentWaitingForSubsetsReason = "WaitingForSubsets"
)

// UnitedDeploymentSubsetConditionType is the type of a condition of a subset.
type UnitedDeploymentSubsetConditionType string

// UnitedDeploymentSubsetSchedulable is False while a subset has no room.
const UnitedDeploymentSubsetSchedulable UnitedDeploymentSubsetConditionType = "Schedulable"

// Reasons of UnitedDeploymentSubsetSchedulable.
const (
	// UnitedDeploymentSubsetRecoverReason is of True.
	UnitedDeploymentSubsetRecoverReason = "recover"
	// UnitedDeploymentSubsetRescheduleReason is of False: pods found no node in time.
	UnitedDeploymentSubsetRescheduleReason = "reschedule"
	// UnitedDeploymentSubsetCreatedReason is of False: the subset is new, and pods are reserved elsewhere.
	UnitedDeploymentSubsetCreatedReason = "created"
)

// Reasons of events on a UnitedDeployment. The first is Normal, the others are Warnings; the blanks in two of them are
// what users match on.
const (
	SuccessfulUpdateSubsetReason        = "SuccessfulUpdateSubset"
	FailedUpdateSubsetReason            = "FailedUpdateSubset"
	FailedRevisionProvisionReason       = "FailedRevisionProvision"
	FailedFindSubsetsReason             = "FailedFindSubsets"
	FailedFindSubsetsInStepReason       = "Failed FindSubsets"
	FailedSpecifySubsetReplicasReason   = "Failed SpecifySubsetReplicas"
	FailedDeleteDuplicatedSubsetsReason = "FailedDeleteDuplicatedSubsets"
)

// Messages of events, word for word those of OpenKruise: dashboards and alerts match on them.
const (
	// CreateSubsetMessage and DeleteSubsetMessage take how many subsets, and their names.
	CreateSubsetMessage = "Create %d Subset (%s)"
	DeleteSubsetMessage = "Delete %d Subset (%s)"
	// SpecifySubsetReplicasMessage takes what is wrong with the replicas of subsets.
	SpecifySubsetReplicasMessage = "Specified subset replicas is ineffective: %s"
)
