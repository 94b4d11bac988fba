// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Types of conditions of a StatefulSet. They are there only while what they say is true.
const (
	// StatefulSetConditionFailedCreatePod is True when the last try to create a pod has failed.
	StatefulSetConditionFailedCreatePod WorkloadConditionType = "FailedCreatePod"
	// StatefulSetConditionFailedUpdatePod is True when the last try to update a pod has failed.
	StatefulSetConditionFailedUpdatePod WorkloadConditionType = "FailedUpdatePod"
)

// StatefulSetComponent is the source of the events of a StatefulSet.
const StatefulSetComponent = "statefulset-controller"

// Reasons of events on a StatefulSet, beside those that it shares with CloneSet. The failures are Warnings.
const (
	SuccessfulUpdateReason = "SuccessfulUpdate"
	SuccessfulResizeReason = "SuccessfulResize"

	FailedResizeReason    = "FailedResize"
	FailedUpdatePVCReason = "FailedUpdatePVC"
)
