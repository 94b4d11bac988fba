// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// What becomes of a run of a schedule.
const (
	// StartRun starts it now.
	StartRun = "Start"
	// WaitRun asks about it again.
	WaitRun = "Wait"
	// SkipRun never starts it.
	SkipRun = "Skip"
)

// Concurrency policies of a schedule.
const (
	Allow   = "Allow"
	Forbid  = "Forbid"
	Replace = "Replace"
)

// RunInput asks whether a run of an AdvancedCronJob that is due starts now (ACJ-05).
type RunInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Workload is the AdvancedCronJob.
	Workload Workload `json:"workload"`
	// Run is the one that is due.
	Run Run `json:"run"`
}

// Run is a run of a schedule that is due.
type Run struct {
	// Name of the job that it would create.
	Name string `json:"name"`
	// Kind of that job: Job, BroadcastJob or ImageListPullJob.
	Kind string `json:"kind"`
	// Scheduled is when the run was due, in nanoseconds since 1970.
	Scheduled int64 `json:"scheduled"`
	// Deadline is when it is too late to start it, in nanoseconds since 1970; left out if it
	// never is.
	Deadline int64 `json:"deadline,omitempty"`
	// Concurrency is Allow, Forbid or Replace.
	Concurrency string `json:"concurrency"`
	// Active are the names of the jobs of earlier runs that have not ended.
	Active []string `json:"active"`
	// Missed is how many earlier runs were due and did not start; it counts to 100.
	Missed int `json:"missed"`
}

// RunOutput says what becomes of a run. The clamp in Go starts none that is held, that is
// too late, or that concurrency Forbid keeps beside an active one, whatever it says.
type RunOutput struct {
	// Action is Start, Wait or Skip.
	Action string `json:"action"`
	// Holds say why it does not start. None means go.
	Holds []decision.Hold `json:"holds"`
}

// RunPoint decides whether a run of a schedule starts. The controller of AdvancedCronJobs
// asks it when a run is due, and while it waits: when the object or one of its jobs changes,
// and at the time that a hold names. Without an answer the run waits.
func RunPoint() decision.Point[RunInput, RunOutput] {
	return decision.Point[RunInput, RunOutput]{
		Name: "rollout/run", Budget: 100 * time.Millisecond, MaxResult: 20000,
		Fallback: func(in RunInput) RunOutput {
			return RunOutput{Action: WaitRun, Holds: []decision.Hold{
				decision.UndecidedHold("No policy could decide this run, so it waits.", in),
			}}
		},
		Check: func(_ RunInput, out RunOutput) error {
			if !slices.Contains([]string{StartRun, WaitRun, SkipRun}, out.Action) {
				return fmt.Errorf("action is %q, want Start, Wait or Skip", out.Action)
			}
			return decision.CheckReasons("holds", out.Holds)
		},
		Lean: func(in RunInput, then, now RunOutput) decision.Strictness {
			starts := func(o RunOutput) int {
				if o.PermittedAction(in) == StartRun {
					return 1
				}
				return 0
			}
			return decision.FewerIsStricter(starts(then), starts(now))
		},
	}
}

// PermittedAction is what becomes of the run: the clamp.
func (o RunOutput) PermittedAction(in RunInput) string {
	switch {
	case o.Action == SkipRun:
		return SkipRun
	case o.Action != StartRun, len(o.Holds) > 0, in.Run.Concurrency == Forbid && len(in.Run.Active) > 0:
		return WaitRun
	}
	return StartRun
}

// ToVerdict implements decision.Judged.
func (o RunOutput) ToVerdict() decision.Verdict {
	return decision.Verdict{Word: o.Action, Reasons: o.Holds}
}

// SetDefaultRules implements decision.Originated.
func (o *RunOutput) SetDefaultRules(pkg string) { decision.SetDefaultRules(o.Holds, pkg) }
