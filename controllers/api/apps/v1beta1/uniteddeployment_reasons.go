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
