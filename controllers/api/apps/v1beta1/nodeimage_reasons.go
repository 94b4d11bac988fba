// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ImagePullerComponent is the source of the events of the program that pulls images on a node.
const ImagePullerComponent = "kruise-daemon-imagepuller"

// Reasons of events on a NodeImage. PullImageFailedReason is a Warning; the owners of the tag get the event too.
const (
	PullImageSucceedReason = "PullImageSucceed"
	PullImageFailedReason  = "PullImageFailed"
)

// ImageRuntimeMissingReason is the reason of Reconciling of a NodeImage while the container runtime of the node serves no images.
const ImageRuntimeMissingReason = "ImageRuntimeMissing"

// Messages of events, word for word those of OpenKruise: dashboards and alerts match on them.
const (
	// PullImageSucceedMessage takes the name of the image, its tag and the time that it took. The spelling is old.
	PullImageSucceedMessage = "Image %v:%v, ecalpsedTime %v"
	// PullImageFailedMessage takes the image, the node and the error.
	PullImageFailedMessage = "Failed to pull image %v on node %v for %v"
)

// Messages of tags whose pull is given up because the node does not report its end.
const (
	// NodeImageNoResponseMessage is of a node that has said nothing of a version for ten minutes.
	NodeImageNoResponseMessage = "node has not responded for a long time"
	// NodeImageDeadlineExceededMessage is of a pull ten minutes after activeDeadlineSeconds.
	NodeImageDeadlineExceededMessage = "pulling exceeds the activeDeadlineSeconds"
)
