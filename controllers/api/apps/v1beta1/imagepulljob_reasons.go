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

// SuccessfulCreateImagePullJobMessage takes how many jobs were created.
const SuccessfulCreateImagePullJobMessage = "Create %d ImagePullJob"
