// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Types of conditions of a BroadcastJob. The job has ended when one of them is True.
const (
	// BroadcastJobComplete is True when the pods of all nodes have ended.
	BroadcastJobComplete JobConditionType = "Complete"
	// BroadcastJobFailed is True when the job was given up.
	BroadcastJobFailed JobConditionType = "Failed"
)

// Reasons of events on a BroadcastJob, beside those that it shares with CloneSet. Some are reasons of conditions too.
const (
	BroadcastJobContinueReason         = "Continue"
	BroadcastJobPausedReason           = "Paused"
	BroadcastJobFailedPodReason        = "failed pod is found"
	BroadcastJobDeadlineExceededReason = "DeadlineExceeded"
	BroadcastJobCompleteReason         = "JobComplete"
	TooManyActivePodsReason            = "TooManyActivePods"
	DuplicatePodCreatedReason          = "DuplicatePodCreatedOnSameNode"
)
