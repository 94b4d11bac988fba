// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PodProbeComponent is the source of the events of the program that probes pods on a node.
const PodProbeComponent = "kruise-daemon-podprobe"

// Reasons of events on a pod, both of type Normal. An unknown result is reported as a failure.
const (
	ProbeSucceededReason = "KruiseProbeSucceeded"
	ProbeFailedReason    = "KruiseProbeFailed"
)

// ProbesStartedReason is the reason of Ready of a NodePodProbe whose pods all have a result.
const ProbesStartedReason = "ProbesStarted"

// ProbeContainerNotRunningMessage is the message of a probe whose container does not run; it takes the container.
const ProbeContainerNotRunningMessage = "Container(%s) is Non-running"
