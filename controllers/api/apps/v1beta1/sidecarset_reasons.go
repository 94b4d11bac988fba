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

// SidecarSetInjectionMissed is the type of the condition of a SidecarSet, and the reason of the event, while pods lack containers that
// they should have been given. It is ours.
const SidecarSetInjectionMissed = "InjectionMissed"

// SidecarSetConflict is the type of the condition of a SidecarSet, and the reason of the event, while pods have the containers of another
// one in place of its own. SidecarSetContainerNameTaken is its reason, which decisions give. They are ours.
const (
	SidecarSetConflict           = "Conflict"
	SidecarSetContainerNameTaken = "ContainerNameTaken"
)

// SidecarSetRecreatedReason is of the event on a SidecarSet that a pod was evicted, which lacks its containers. It is ours.
const SidecarSetRecreatedReason = "MissedPodEvicted"

// Reasons of events. The first is on the SidecarSet and Normal; the others are on the pod.
const (
	SidecarSetNotUpgradablePodsReason       = "NotUpgradablePods"
	SidecarSetResetContainerSucceededReason = "ResetContainerSucceed"
	SidecarSetResetContainerFailedReason    = "ResetContainerFailed"
)

// Of pods that lack the containers of a SidecarSet and are evicted for it. They are ours.
const (
	// SidecarSetMissedRecreated is the type of the condition: True while such pods are evicted, False once that brought nothing.
	SidecarSetMissedRecreated = "MissedRecreated"
	// SidecarSetRecreatingReason and SidecarSetRecreatedInVainReason are its reasons; the second is one of an event too.
	SidecarSetRecreatingReason      = "Recreating"
	SidecarSetRecreatedInVainReason = "RecreatedInVain"
	// SidecarSetRecreationHeldReason is of the event that a policy holds the evictions.
	SidecarSetRecreationHeldReason = "RecreationHeld"
)
