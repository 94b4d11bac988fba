// SPDX-License-Identifier: Apache-2.0

package v1beta1

const (
	// ContainerRecreateRequestPreRecreateGrace is the condition that is True from when the pod is held not ready; its
	// lastTransitionTime, which never moves, begins unreadyGracePeriodSeconds.
	ContainerRecreateRequestPreRecreateGrace = "PreRecreateGrace"
	// ContainerRecreateRequestPreRecreateGraceReason is its only reason.
	ContainerRecreateRequestPreRecreateGraceReason = "PreRecreateGrace"
	// ContainerRecreateRequestPreRecreateGraceMessage is its only message.
	ContainerRecreateRequestPreRecreateGraceMessage = "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain"
)

// ContainerRecreateRequestComponent is the source of the events that the node writes on pods.
const ContainerRecreateRequestComponent = "kruise-daemon-crr"

// Reasons of events on a pod. FailedPreStopHookReason is a Warning.
const (
	KillingContainerReason  = "Killing"
	FailedPreStopHookReason = "FailedPreStopHook"
)

// KillingContainerMessage is the message of KillingContainerReason; it takes the names of the container and the request.
const KillingContainerMessage = "Stopping container %s by ContainerRecreateRequest %s"

// Messages of requests and containers, word for word those of OpenKruise: scripts match on them.
const (
	ContainerRecreateRequestPodGoneMessage          = "pod has gone"
	ContainerRecreateRequestNoResponseMessage       = "daemon has not responded for a long time"
	ContainerRecreateRequestDeadlineExceededMessage = "recreating has exceeded the activeDeadlineSeconds"
	ContainerRecreateRequestNotFoundMessage         = "not found container on Node"

	// ContainerRecreateRequestKillErrorMessage and ContainerRecreateRequestRuntimeMessage take an error.
	ContainerRecreateRequestKillErrorMessage = "kill container error: %v"
	ContainerRecreateRequestRuntimeMessage   = "failed to find runtime service: %v"
)

// Reasons of Ready and Stalled of a request that has ended.
const (
	ContainersRestartedReason    = "ContainersRestarted"
	ContainersNotRestartedReason = "ContainersNotRestarted"
)

// ContainerRecreateRequestHeld is the condition that is True while a policy holds the restarts of a request. It is
// removed when none does. Its reason is that of the policy.
const ContainerRecreateRequestHeld = "RestartHeld"
