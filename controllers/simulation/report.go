// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Report is a whole rollout.
type Report struct {
	Workload decision.Subject `json:"workload"`
	// From and To are the revisions of the workload when it began.
	From string `json:"from"`
	To   string `json:"to"`
	// Replicas is how many pods it is to have. Policies is the revision of all policies, Bundles what it is made of.
	Replicas   int         `json:"replicas"`
	Policies   string      `json:"policies"`
	Bundles    []string    `json:"bundles"`
	Began      time.Time   `json:"began"`
	Steps      []Step      `json:"steps"`
	Waves      int         `json:"waves"`
	End        Outcome     `json:"end"`
	Violations []Violation `json:"violations"`
}

// TotalDuration is how long it all took.
func (r Report) TotalDuration() time.Duration { return r.End.At.Sub(r.Began) }

// Step is one round of the controller.
type Step struct {
	At time.Time `json:"at"`
	// Wave counts the rounds in which pods were moved; 0 is none of them.
	Wave  int          `json:"wave,omitempty"`
	Moved []UpdatedPod `json:"moved,omitempty"`
	// Created counts the pods that were made.
	Created int `json:"created,omitempty"`
	// The counts are those after the round.
	Available int `json:"available"`
	Pods      int `json:"pods"`
	Updated   int `json:"updated"`

	Verdict explain.Verdict `json:"verdict"`
	Reason  string          `json:"reason"`
	Message string          `json:"message"`
	Rule    string          `json:"rule,omitempty"`
	Until   string          `json:"until,omitempty"`
	// Why counts the pods that are not where they should be by what keeps them.
	Why []explain.ReasonCount `json:"why,omitempty"`
	// Refused are the writes of the round that a budget, or a rule of protection, was
	// against.
	Refused []Refusal `json:"refused,omitempty"`
	// Undecided is why there is no decision, and a fallback holds.
	Undecided string `json:"undecided,omitempty"`
	// Error is what the round failed with, if not with what was refused alone.
	Error string `json:"error,omitempty"`
}

// Progress is how far a rollout is that goes on.
type Progress struct {
	At time.Time
	// Wave is that of the last round that moved pods. In the midst of a round it is
	// the one before.
	Wave int
	// Pods are all there are, Updated those of the new revision, and Replicas is how
	// many there are to be.
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

// Writes that are refused or judged.
const (
	writeCreate = "create"
	writeUpdate = "update"
	writeDelete = "delete"
)

// UpdatedPod is a pod whose update began.
type UpdatedPod struct {
	Name   string            `json:"name"`
	Zone   string            `json:"zone,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// How a simulation ends.
const (
	Done    = "Done"    // all pods are where they should be
	Stuck   = "Stuck"   // nothing happens any more by itself
	Stopped = "Stopped" // as far as it was to go
)

// Outcome is how it ended.
type Outcome struct {
	At  time.Time `json:"at"`
	How string    `json:"how"`
	// Since is when anything happened last, if it is stuck.
	Since *time.Time `json:"since,omitempty"`
}

// Violation is a write of the controller that broke what is promised whatever
// policies say.
type Violation struct {
	At time.Time `json:"at"`
	// Kind is Promise for numbers of pods, Budget for those of a budget, Held for a
	// pod that is held.
	Kind    string `json:"kind"`
	Write   string `json:"write"`
	Pod     string `json:"pod"`
	Message string `json:"message"`
}
