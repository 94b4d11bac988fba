// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// States of a node in a BroadcastJob.
const (
	// Waiting: it has no pod of the job yet.
	Waiting = "Waiting"
	// Active: its pod runs, waits to, or terminates.
	Active = "Active"
	// Succeeded: its pod has succeeded.
	Succeeded = "Succeeded"
	// Failed: its pod has failed.
	Failed = "Failed"
)

// BroadcastInput asks which nodes get their pod of a BroadcastJob now (BJ-05).
type BroadcastInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Job is the BroadcastJob.
	Job Job `json:"job"`
	// Room is how many more pods may be active: parallelism less those that are.
	Room int `json:"room"`
	// Counts are the nodes of the job, by their states.
	Counts Counts `json:"counts"`
	// Nodes are all nodes that the job is for, by name.
	Nodes []Node `json:"nodes"`
}

// Job is a BroadcastJob.
type Job struct {
	// Name of the job.
	Name string `json:"name"`
	// Namespace of the job and its pods.
	Namespace string `json:"namespace"`
	// Created is in nanoseconds since 1970.
	Created int64 `json:"created"`
	// Labels of the job; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the job, but for what kubectl apply notes there.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Counts are nodes, by their states.
type Counts struct {
	// Desired are all.
	Desired int `json:"desired"`
	// Waiting are those without a pod.
	Waiting int `json:"waiting"`
	// Active are those whose pod runs, waits to, or terminates.
	Active int `json:"active"`
	// Succeeded are those whose pod has succeeded.
	Succeeded int `json:"succeeded"`
	// Failed are those whose pod has failed.
	Failed int `json:"failed"`
}

// Node is a node that the job is for.
type Node struct {
	// Name of the node.
	Name string `json:"name"`
	// State is Waiting, Active, Succeeded or Failed.
	State string `json:"state"`
	// Labels of the node; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Conditions are the states of its conditions, by their types, such as {"Ready": "True"}.
	Conditions map[string]string `json:"conditions,omitempty"`
}

// BroadcastOutput says which nodes get their pod now. The clamp in Go creates pods only on
// nodes that wait, as many as there is room for, and none that is held, whatever it says.
type BroadcastOutput struct {
	// Nodes are names, in the order in which they get their pods.
	Nodes []string `json:"nodes"`
	// Holds keep pods from being created for now. None means go.
	Holds []Hold `json:"holds"`
	// Denials are of nodes that get no pod of this job: it is not for them.
	Denials []Denial `json:"denials"`
}

// BroadcastPoint decides which nodes get their pod of a BroadcastJob next. The controller
// asks it while nodes wait and there is room: when the job, one of its pods or a node
// changes, and at the time that a hold names. Without an answer no pod is created.
func BroadcastPoint() decision.Point[BroadcastInput, BroadcastOutput] {
	return decision.Point[BroadcastInput, BroadcastOutput]{
		Name: "placement/broadcast", Budget: 500 * time.Millisecond,
		MaxBytes: 4 << 20, // a name, and perhaps a reason, for each of thousands of nodes
		Fallback: func(BroadcastInput) BroadcastOutput {
			return BroadcastOutput{Holds: []Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy could decide which nodes are next, so no pod is created.",
			}}}
		},
		Check: checkBroadcast,
		Lean: func(in BroadcastInput, then, now BroadcastOutput) decision.Strictness {
			return placesStrictness(then.Next(in), now.Next(in))
		},
	}
}

func checkBroadcast(in BroadcastInput, out BroadcastOutput) error {
	return checkPlaces("nodes", out.Nodes, waitingNodes(in.Nodes), out.Holds, out.Denials)
}

// waitingNodes says of each node of a job whether it waits for its pod.
func waitingNodes(nodes []Node) map[string]bool {
	out := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		out[n.Name] = n.State == Waiting
	}
	return out
}

// Next are the nodes of an answer that get their pod now: the clamp.
func (o BroadcastOutput) Next(in BroadcastInput) []string {
	return nextPlaces(o.Nodes, waitingNodes(in.Nodes), in.Room, o.Holds, o.Denials)
}

// DeniedNodes are the nodes that the job is not for: of those that have no pod of it.
func (o BroadcastOutput) DeniedNodes(in BroadcastInput) map[string]Denial {
	return deniedOf(waitingNodes(in.Nodes), o.Denials)
}

// ReportedHold is the hold that the condition reports: the first that keeps a node that waits from its
// pod. Those of all nodes come first.
func (o BroadcastOutput) ReportedHold(in BroadcastInput) *Hold {
	return reportedHold(waitingNodes(in.Nodes), o.Holds, o.Denials)
}

// RequeueTimes are the times at which its holds may change by the passing of time alone.
func (o BroadcastOutput) RequeueTimes() []string { return requeueTimes(o.Holds) }
