// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Messages in the status of an ImagePullJob, word for word those of OpenKruise: scripts wait for them.
const (
	ImagePullJobCompletedMessage        = "job has completed"
	ImagePullJobNoProgressMessage       = "job is running, no progress"
	ImagePullJobDeadlineExceededMessage = "job exceeds activeDeadlineSeconds"
	// ImagePullJobProgressMessage takes the share of nodes that are done, in percent.
	ImagePullJobProgressMessage = "job is running, progress %.1f%%"
)

// Reasons of events on an ImageListPullJob.
const (
	SuccessfulCreateImagePullJobReason = "Successful create ImagePullJob"
	SuccessfulDeleteImagePullJobReason = "Successful delete ImagePullJob"
)

// Messages of events on an ImageListPullJob.
const (
	// SuccessfulCreateImagePullJobMessage takes how many jobs were created.
	SuccessfulCreateImagePullJobMessage = "Create %d ImagePullJob"
	// SuccessfulDeleteImagePullJobMessage takes the name of the job.
	SuccessfulDeleteImagePullJobMessage = "Delete ImagePullJob %s"
)

// Conditions of an ImagePullJob.
const (
	// ImagePullJobHeld is true while a policy keeps nodes from beginning.
	ImagePullJobHeld = "PullHeld"
	// ImagePullJobDenied is true where a policy denies nodes the image. They have failed.
	ImagePullJobDenied = "PullDenied"
	// ImagePullJobSecretMissing is true while a pull secret cannot be read.
	ImagePullJobSecretMissing = "PullSecretMissing"
)

// PullSecretMissingReason is of a job with pull secrets that are not there, or that the
// manager may not read.
const PullSecretMissingReason = "NotReadable"

// Reasons of Ready and Stalled of ImagePullJobs, ImageListPullJobs and NodeImages.
const (
	// ImagesPulledReason is of a job whose nodes have all pulled the images, and of a node that has pulled all of its own.
	ImagesPulledReason = "ImagesPulled"
	// PullFailedReason is of a job that has ended without, and of a node with an image whose pull has failed.
	PullFailedReason = "PullFailed"
)

// InvalidImageReason is of a job whose image has no name that nodes can pull.
const InvalidImageReason = "InvalidImage"
