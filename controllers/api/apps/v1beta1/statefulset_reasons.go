// SPDX-License-Identifier: Apache-2.0

package v1beta1

// StatefulSetComponent is the source of the events of a StatefulSet.
const StatefulSetComponent = "statefulset-controller"

// Types of the conditions of a StatefulSet, made anew each time that the status is written.
const (
	StatefulSetFailedCreatePod WorkloadConditionType = "FailedCreatePod"
	StatefulSetFailedUpdatePod WorkloadConditionType = "FailedUpdatePod"
	// StatefulSetVolumeClaimsDiffer is True while claims differ from their templates and are not brought there. It is
	// ours, and absent otherwise.
	StatefulSetVolumeClaimsDiffer WorkloadConditionType = "VolumeClaimsDiffer"
)

// Reasons of the condition VolumeClaimsDiffer, the first that applies.
const (
	// VolumeClaimsCannotGrowReason tells of claims that growing does not bring to their templates, so that their pods are
	// not updated: another storage class or other access modes, or a storage class that does not let volumes grow.
	VolumeClaimsCannotGrowReason = "CannotGrow"
	// VolumeClaimsOnDeleteReason tells of claims that follow their templates only when a client deletes them.
	VolumeClaimsOnDeleteReason = "OnDelete"
	// VolumeClaimsLargerReason tells of claims that are larger than their templates: a claim does not shrink.
	VolumeClaimsLargerReason = "Larger"
)

// Reasons of events about the claims of a StatefulSet. All but SuccessfulResizeReason are Warnings.
const (
	// SuccessfulResizeReason tells of a claim that was made to ask for more.
	SuccessfulResizeReason = "SuccessfulResize"
	// FailedResizeReason tells of a claim that could not be made to, or whose volume does not grow.
	FailedResizeReason = "FailedResize"
	// FailedUpdatePVCReason tells of claims that growing does not bring to their templates.
	FailedUpdatePVCReason = "FailedUpdatePVC"
)
