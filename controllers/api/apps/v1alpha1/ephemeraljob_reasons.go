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

// Reasons of the conditions.
const (
	EphemeralJobMatchEmptyReason       = "MatchEmpty"
	EphemeralJobSucceededReason        = "JobSucceeded"
	EphemeralJobFailedReason           = "JobFailed"
	EphemeralJobDeadlineExceededReason = "DeadlineExceeded"
	EphemeralJobErrorReason            = "Error"
)

// EphemeralJobMatchEmptyMessage is the message of MatchedEmpty.
const EphemeralJobMatchEmptyMessage = "job match no pods"

// Reasons of events on an EphemeralJob; both are Warnings. The first is a reason of JobFailed too.
const (
	EphemeralJobCreateFailedReason = "CreateFailed"
	EphemeralJobRemoveFailedReason = "RemoveFailed"
)
