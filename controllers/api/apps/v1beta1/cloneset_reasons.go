// SPDX-License-Identifier: Apache-2.0

package v1beta1

// CloneSetConditionType is the type of a condition of a CloneSet.
type CloneSetConditionType string

const (
	// CloneSetConditionFailedScale is True while scaling fails; its message is the error.
	CloneSetConditionFailedScale CloneSetConditionType = "FailedScale"
	// CloneSetConditionFailedUpdate is True while updates fail; its message is the error.
	CloneSetConditionFailedUpdate CloneSetConditionType = "FailedUpdate"
	// CloneSetConditionProgressing is there if progressDeadlineSeconds is set (CS-13).
	CloneSetConditionProgressing CloneSetConditionType = "Progressing"
	// CloneSetConditionUpdateHeld is True while a policy holds the update; its reason is the policy's. It is ours.
	CloneSetConditionUpdateHeld CloneSetConditionType = "UpdateHeld"
)

// Reasons of Progressing, in the order in which they are tried (CS-13).
const (
	CloneSetAvailableReason                  = "CloneSetAvailable"
	CloneSetProgressPausedReason             = "CloneSetPaused"
	CloneSetProgressPartitionAvailableReason = "ProgressPartitionAvailable"
	CloneSetProgressDeadlineExceededReason   = "ProgressDeadlineExceeded"
	CloneSetProgressUpdatedReason            = "CloneSetUpdated"
)

// Messages of Progressing that users search their logs for.
const (
	// CloneSetProgressDeadlineExceededMessage takes the update revision.
	CloneSetProgressDeadlineExceededMessage = "CloneSet revision %s has timed out progressing"
	CloneSetProgressUpdatedMessage          = "CloneSet is progressing"
)

// CloneSetComponent is the source of the events of a CloneSet.
const CloneSetComponent = "cloneset-controller"

// Reasons of events on a CloneSet. FailedCreateImagePullJobReason is of type Normal, as it always was; the other
// failures and ScaleUpLimitedReason are Warnings.
const (
	SuccessfulCreateReason            = "SuccessfulCreate"
	SuccessfulDeleteReason            = "SuccessfulDelete"
	SuccessfulUpdatePodInPlaceReason  = "SuccessfulUpdatePodInPlace"
	SuccessfulUpdatePodReCreateReason = "SuccessfulUpdatePodReCreate"
	CreatedImagePullJobReason         = "CreatedImagePullJob"
	FailedCreateImagePullJobReason    = "FailedCreateImagePullJob"

	FailedCreateReason            = "FailedCreate"
	FailedDeleteReason            = "FailedDelete"
	FailedUpdateReason            = "FailedUpdate"
	FailedUpdatePodInPlaceReason  = "FailedUpdatePodInPlace"
	FailedUpdatePodReCreateReason = "FailedUpdatePodReCreate"
	ScaleUpLimitedReason          = "ScaleUpLimited"
)

// Messages of events, word for word those of OpenKruise: dashboards and alerts match on them.
const (
	// CreatedImagePullJobMessage takes the name of the job and the image.
	CreatedImagePullJobMessage = "created ImagePullJob %s for image: %s"
	// SuccessfulCreateMessage and SuccessfulDeleteMessage take the name of the pod.
	SuccessfulCreateMessage = "succeed to create pod %s"
	SuccessfulDeleteMessage = "succeed to delete pod %s"
	// SuccessfulUpdatePodInPlaceMessage takes the name of the pod and the revision.
	SuccessfulUpdatePodInPlaceMessage = "successfully update pod %s in-place(revision %v)"
)

// InPlaceOnlyImpossibleMessage is the error of an update that InPlaceOnly forbids (CS-12); it takes the name of the pod.
const InPlaceOnlyImpossibleMessage = "find Pod %s update strategy is InPlaceOnly but can not update in-place"
