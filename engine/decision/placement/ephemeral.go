// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// EphemeralInput asks which pods get the containers of an EphemeralJob now (EJ-04).
type EphemeralInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Job is the EphemeralJob.
	Job Job `json:"job"`
	// Containers are those of its template.
	Containers []Container `json:"containers"`
	// Room is in how many more pods the containers may run: parallelism less those in
	// which they do.
	Room int `json:"room"`
	// Counts are the pods of the job, by their states.
	Counts Counts `json:"counts"`
	// Pods are all pods that the job is for, the oldest first.
	Pods []Pod `json:"pods"`
}

// Container is an ephemeral container of an EphemeralJob.
type Container struct {
	// Name of the container.
	Name string `json:"name"`
	// Image as the job has it.
	Image string `json:"image"`
	// TargetContainerName is the container whose processes it sees; empty for none.
	TargetContainerName string `json:"targetContainerName,omitempty"`
	// Privileged is true when it has all rights on its node.
	Privileged bool `json:"privileged,omitempty"`
}

// Pod is a pod that an EphemeralJob is for.
type Pod struct {
	// Name of the pod.
	Name string `json:"name"`
	// State is Waiting while the pod does not have the containers, Active while they start
	// or run, Succeeded or Failed.
	State string `json:"state"`
	// Node of the pod; empty while it has none.
	Node string `json:"node,omitempty"`
	// Created is in nanoseconds since 1970.
	Created int64 `json:"created"`
	// Refused is true for a pod that cannot have the containers, such as one with a container of
	// the same name.
	Refused bool `json:"refused,omitempty"`
	// Labels of the pod; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pod; there are none if it has none.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// EphemeralOutput says which pods get the containers now. The clamp in Go adds them only to
// pods that wait, as many as there is room for, and to none that is held or denied, whatever it
// says.
type EphemeralOutput struct {
	// Pods are names, in the order in which they get the containers.
	Pods []string `json:"pods"`
	// Holds keep containers from being added for now. None means go.
	Holds []Hold `json:"holds"`
	// Denials are of pods that do not get the containers: the job is not for them.
	Denials []Denial `json:"denials"`
}

// EphemeralPoint decides which pods get the containers of an EphemeralJob next. The controller
// asks it while pods wait: when the job or one of its pods changes, and at the time that a hold
// names. Without an answer no container is added.
func EphemeralPoint() decision.Point[EphemeralInput, EphemeralOutput] {
	return decision.Point[EphemeralInput, EphemeralOutput]{
		Name: "placement/ephemeral", Budget: 500 * time.Millisecond,
		MaxBytes: 4 << 20, // a name, and perhaps a reason, for each of thousands of pods
		Fallback: func(EphemeralInput) EphemeralOutput {
			return EphemeralOutput{Holds: []Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy could decide which pods are next, so no container is added.",
			}}}
		},
		Check: func(in EphemeralInput, out EphemeralOutput) error {
			return checkPlaces("pods", out.Pods, in.waitingPods(), out.Holds, out.Denials)
		},
		Lean: func(in EphemeralInput, then, now EphemeralOutput) decision.Strictness {
			return placesStrictness(then.Next(in), now.Next(in))
		},
	}
}

// waitingPods says of each pod of the job whether it waits for the containers.
func (in EphemeralInput) waitingPods() map[string]bool {
	out := make(map[string]bool, len(in.Pods))
	for _, p := range in.Pods {
		out[p.Name] = p.State == Waiting
	}
	return out
}

// Next are the pods of an answer that get the containers now: the clamp.
func (o EphemeralOutput) Next(in EphemeralInput) []string {
	return nextPlaces(o.Pods, in.waitingPods(), in.Room, o.Holds, o.Denials)
}

// DeniedPods are the pods that the job is not for: of those that do not have its containers.
func (o EphemeralOutput) DeniedPods(in EphemeralInput) map[string]Denial {
	return deniedOf(in.waitingPods(), o.Denials)
}

// ReportedHold is the hold that the condition reports: the first that keeps a pod that waits from the
// containers. Those of all pods come first.
func (o EphemeralOutput) ReportedHold(in EphemeralInput) *Hold {
	return reportedHold(in.waitingPods(), o.Holds, o.Denials)
}

// RequeueTimes are the times at which its holds may change by the passing of time alone.
func (o EphemeralOutput) RequeueTimes() []string { return requeueTimes(o.Holds) }
