// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Types of conditions of a BroadcastJob. The job has ended when one of them is True.
const (
	// BroadcastJobComplete is True when the pods of all nodes have ended.
	BroadcastJobComplete JobConditionType = "Complete"
	// BroadcastJobFailed is True when the job was given up.
	BroadcastJobFailed JobConditionType = "Failed"
)

// Types of conditions of a BroadcastJob that goes on. They are ours.
const (
	// BroadcastJobPausedByFailure is True while failurePolicy Pause keeps pods from being created.
	BroadcastJobPausedByFailure JobConditionType = "PausedByFailure"
	// BroadcastJobHeld is True while a policy keeps pods from being created. It is the reason of the event that reports a
	// new hold, too.
	BroadcastJobHeld JobConditionType = "BroadcastHeld"
)

// BroadcastJobComponent is the source of the events of a BroadcastJob.
const BroadcastJobComponent = "broadcastjob-controller"

// FailureSeenKey annotates the failed pods of a BroadcastJob that a user has gone on from: they pause it no more.
const FailureSeenKey = "broadcastjob.regatta.sh/failure-seen"

// BroadcastJobNodesDoneReason is the reason of Ready of a job that never ends, while all nodes are done.
const BroadcastJobNodesDoneReason = "NodesDone"

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

// Messages of BroadcastJobs, word for word those of OpenKruise: scripts match on them.
const (
	// BroadcastJobSuccessfulCreateMessage and BroadcastJobSuccessfulDeleteMessage take the name of the pod.
	BroadcastJobSuccessfulCreateMessage = "Created pod: %s"
	BroadcastJobSuccessfulDeleteMessage = "Deleted pod: %s"
	// BroadcastJobFailedCreateMessage takes the error.
	BroadcastJobFailedCreateMessage = "Error creating: %v"
	// BroadcastJobCompletedMessage is of the condition Complete; it takes how many pods succeeded and failed.
	BroadcastJobCompletedMessage = "Job completed, %d pods succeeded, %d pods failed"
	// BroadcastJobDeadlineExceededMessage takes the namespace and the name of the job.
	BroadcastJobDeadlineExceededMessage = "Job %s/%s was active longer than specified deadline"
)
