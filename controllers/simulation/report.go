// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Report is the report of a whole rollout.
type Report struct {
	Workload decision.Subject `json:"workload"`
	// From and To are the revisions of the workload when it began.
	From string `json:"from"`
	To   string `json:"to"`
	// Replicas is the desired number of pods. Policies is the revision of all policies; Bundles are the bundles in it.
	Replicas   int         `json:"replicas"`
	Policies   string      `json:"policies"`
	Bundles    []string    `json:"bundles"`
	Began      time.Time   `json:"began"`
	Steps      []Step      `json:"steps"`
	Waves      int         `json:"waves"`
	End        Outcome     `json:"end"`
	Violations []Violation `json:"violations"`
}

// TotalDuration is how long the rollout took.
func (r Report) TotalDuration() time.Duration { return r.End.At.Sub(r.Began) }

// Step is one round of the controller.
type Step struct {
	At time.Time `json:"at"`
	// Wave is the number of the wave, which is a round in which pods were moved; 0 for other rounds.
	Wave  int          `json:"wave,omitempty"`
	Moved []UpdatedPod `json:"moved,omitempty"`
	// Created counts the pods that were created.
	Created int `json:"created,omitempty"`
	// Available, Pods and Updated are the counts after the round.
	Available int `json:"available"`
	Pods      int `json:"pods"`
	Updated   int `json:"updated"`

	Verdict explain.Verdict `json:"verdict"`
	Reason  string          `json:"reason"`
	Message string          `json:"message"`
	Rule    string          `json:"rule,omitempty"`
	Until   string          `json:"until,omitempty"`
	// Why counts, by reason, the pods that are not up to date.
	Why []explain.ReasonCount `json:"why,omitempty"`
	// Refused are the writes of the round that a budget, or a rule of protection,
	// refused.
	Refused []Refusal `json:"refused,omitempty"`
	// Undecided is why no decision was made, so that a fallback holds.
	Undecided string `json:"undecided,omitempty"`
	// Error is the error of the round, unless it only consists of refusals.
	Error string `json:"error,omitempty"`
}

// Progress is the progress of a rollout.
type Progress struct {
	At time.Time
	// Wave is the number of the last round that moved pods. During a round it is
	// the number before it.
	Wave int
	// Pods is the number of pods, Updated is the number of pods at the new revision, and Replicas is the
	// desired number of pods.
	Pods, Updated, Replicas int
}

// Refusal is a write to a pod that was refused.
type Refusal struct {
	Write string `json:"write"`
	Pod   string `json:"pod"`
	// Budget is the PodUnavailableBudget that refused it, empty for a rule of users.
	Budget  string `json:"budget,omitempty"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Until   string `json:"until,omitempty"`
}

// Writes that can be refused or checked.
const (
	writeCreate = "create"
	writeUpdate = "update"
	writeDelete = "delete"
)

// UpdatedPod is a pod whose update began.
type UpdatedPod struct {
	Name string `json:"name"`
	// InPlace is true for a pod that is changed, false for one that is deleted so that another one takes its place.
	InPlace bool `json:"inPlace,omitempty"`

	Zone   string            `json:"zone,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// How a simulation ends.
const (
	Done    = "Done"    // all pods are up to date
	Stuck   = "Stuck"   // nothing changes any more by itself
	Stopped = "Stopped" // a limit in the options was reached
)

// Outcome is how a simulation ended.
type Outcome struct {
	At  time.Time `json:"at"`
	How string    `json:"how"`
	// Since is when anything last happened, if the simulation is stuck.
	Since *time.Time `json:"since,omitempty"`
}

// Violation is a write of the controller that violated what must hold whatever
// policies answer.
type Violation struct {
	At time.Time `json:"at"`
	// Kind is Promise for a promise of the kind, Budget for the limit of a budget, and Held for the move of a
	// held pod.
	Kind    string `json:"kind"`
	Write   string `json:"write"`
	Pod     string `json:"pod"`
	Message string `json:"message"`
}
