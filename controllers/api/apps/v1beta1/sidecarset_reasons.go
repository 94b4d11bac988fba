// SPDX-License-Identifier: Apache-2.0

package v1beta1

// SidecarSetUpgradableCondition is the type of the condition of a pod that says whether all its SidecarSets can update
// it in place; its message is a JSON map from SidecarSet to true or false.
const SidecarSetUpgradableCondition = "SidecarSetUpgradable"

// Reasons of SidecarSetUpgradableCondition.
const (
	// SidecarSetAllUpgradableReason is of True.
	SidecarSetAllUpgradableReason = "AllSidecarsetUpgradable"
	// SidecarSetUpdateImmutableFieldReason is of False: more than images has changed.
	SidecarSetUpdateImmutableFieldReason = "UpdateImmutableField"
)

// Reasons of events. The first is on the SidecarSet and Normal; the others are on the pod.
const (
	SidecarSetNotUpgradablePodsReason       = "NotUpgradablePods"
	SidecarSetResetContainerSucceededReason = "ResetContainerSucceed"
	SidecarSetResetContainerFailedReason    = "ResetContainerFailed"
)
