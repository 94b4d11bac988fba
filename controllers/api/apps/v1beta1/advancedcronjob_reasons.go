// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Types of conditions of an AdvancedCronJob. They are ours.
const (
	// AdvancedCronJobRunHeld is True while a run that is due waits.
	AdvancedCronJobRunHeld = "RunHeld"
	// AdvancedCronJobRunLeftOut is True once a run was left out. Its lastTransitionTime is when the latest of these was
	// due: no run that was due up to then starts any more.
	AdvancedCronJobRunLeftOut = "RunLeftOut"
	// AdvancedCronJobScheduleValid is False while the schedule or its zone cannot be read. It is there from when the
	// controller first saw the object.
	AdvancedCronJobScheduleValid = "ScheduleValid"
)

// AdvancedCronJobComponent is the source of the events of an AdvancedCronJob.
const AdvancedCronJobComponent = "advancedcronjob-controller"

// Reasons of events on an AdvancedCronJob, beside those that it shares with CloneSet: those of a CronJob.
const (
	MissScheduleReason        = "MissSchedule"
	TooManyMissedTimesReason  = "TooManyMissedTimes"
	JobAlreadyActiveReason    = "JobAlreadyActive"
	SawCompletedJobReason     = "SawCompletedJob"
	UnparseableScheduleReason = "UnparseableSchedule"
	UnknownTimeZoneReason     = "UnknownTimeZone"
	// ValidScheduleReason is of the condition ScheduleValid while it is True.
	ValidScheduleReason = "Valid"
	// TakenOverReason is of the condition RunLeftOut: it is not known which runs an earlier controller has started.
	TakenOverReason = "TakenOver"
)
