// SPDX-License-Identifier: Apache-2.0

package v1beta1

// DaemonSetComponent is the source of the events of a DaemonSet.
const DaemonSetComponent = "daemonset-controller"

// Reasons of events on a DaemonSet, beside those that it shares with CloneSet. All are Warnings.
const (
	// SelectingAllReason tells that the selector is empty: it would select every pod of the namespace.
	SelectingAllReason = "SelectingAll"
	// FailedDaemonPodReason tells of a failed pod that is deleted.
	FailedDaemonPodReason = "FailedDaemonPod"
	// MaxUnavailableReachedReason tells that as many nodes are without an available pod as may be, so that the others wait.
	MaxUnavailableReachedReason = "numUnavailable >= maxUnavailable"
)

// Messages of events, which differ from those of CloneSet. Both take the name of the pod.
const (
	DaemonSetSuccessfulCreateMessage = "Created pod: %s"
	DaemonSetSuccessfulDeleteMessage = "Deleted pod: %s"
)
