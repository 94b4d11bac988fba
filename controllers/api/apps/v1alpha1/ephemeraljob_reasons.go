// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"

// Types of conditions of an EphemeralJob.
const (
	// EphemeralJobConditionInitialized is True once the controller has seen the job.
	EphemeralJobConditionInitialized v1beta1.JobConditionType = "Initialized"
	// EphemeralJobConditionMatchedEmpty is True when no pod matches.
	EphemeralJobConditionMatchedEmpty v1beta1.JobConditionType = "MatchedEmpty"
	// EphemeralJobConditionSucceeded is True when the job has succeeded.
	EphemeralJobConditionSucceeded v1beta1.JobConditionType = "JobSucceeded"
	// EphemeralJobConditionFailed is True when containers have failed, could not be added, or came too late.
	EphemeralJobConditionFailed v1beta1.JobConditionType = "JobFailed"
	// EphemeralJobConditionError is True when the template has no containers.
	EphemeralJobConditionError v1beta1.JobConditionType = "JobError"
)

// Types of conditions of an EphemeralJob that are ours. Each is the reason of the event that reports it, too.
const (
	// EphemeralJobWaitingForNodes is True while containers were added to pods whose nodes are not ready.
	EphemeralJobWaitingForNodes v1beta1.JobConditionType = "EphemeralJobWaitingForNodes"
	// EphemeralJobHeld is True while a policy keeps containers from being added.
	EphemeralJobHeld v1beta1.JobConditionType = "EphemeralJobHeld"
	// EphemeralJobDenied is True while a policy takes pods out of the job that the selector matches.
	EphemeralJobDenied v1beta1.JobConditionType = "EphemeralJobDenied"
)

// EphemeralJobComponent is the source of the events of an EphemeralJob.
const EphemeralJobComponent = "ephemeraljob-controller"

// EphemeralJobIDEnv is in each container that an EphemeralJob adds, with the UID of the job.
const EphemeralJobIDEnv = "KRUISE_EJOB_ID"

// EphemeralContainersFinalizer is what OpenKruise sets on EphemeralJobs. Containers cannot be taken out of pods again, so
// nothing is to be done before a job goes.
const EphemeralContainersFinalizer = "apps.kruise.io/ephemeralcontainers-cleanup"

// Reasons of the conditions.
const (
	EphemeralJobInitializedReason      = "Initialized"
	EphemeralJobMatchEmptyReason       = "MatchEmpty"
	EphemeralJobSucceededReason        = "JobSucceeded"
	EphemeralJobFailedReason           = "JobFailed"
	EphemeralJobDeadlineExceededReason = "DeadlineExceeded"
	EphemeralJobErrorReason            = "Error"
)

// Messages of the conditions.
const (
	EphemeralJobMatchEmptyMessage = "job match no pods"
	EphemeralJobSucceededMessage  = "job success to run all tasks"
)

// Reasons of events on an EphemeralJob; both are Warnings. The first is a reason of JobFailed too. Only OpenKruise
// records the second.
const (
	EphemeralJobCreateFailedReason = "CreateFailed"
	EphemeralJobRemoveFailedReason = "RemoveFailed"
)

// EphemeralJobNodeNotReadyReason is the reason of EphemeralJobWaitingForNodes.
const EphemeralJobNodeNotReadyReason = "NodeNotReady"

// EphemeralJobNotHeldReason is the reason of the event that ends EphemeralJobHeld.
const EphemeralJobNotHeldReason = "NotHeld"
