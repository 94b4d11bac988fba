// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of events on a DaemonSet, beside those that it shares with CloneSet. Both are Warnings.
const (
	// SelectingAllReason tells that the selector is empty: it would select every pod of the namespace.
	SelectingAllReason = "SelectingAll"
	// FailedDaemonPodReason tells of a failed pod that is deleted.
	FailedDaemonPodReason = "FailedDaemonPod"
)

// Messages of events, which differ from those of CloneSet. Both take the name of the pod.
const (
	DaemonSetSuccessfulCreateMessage = "Created pod: %s"
	DaemonSetSuccessfulDeleteMessage = "Deleted pod: %s"
)
