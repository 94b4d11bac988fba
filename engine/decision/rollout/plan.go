// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// PlanInput asks how far a rollout may go now.
type PlanInput struct {
	// Now is in nanoseconds since 1970, as the time functions of Rego want it.
	Now int64 `json:"now"`
	// Workload is what the pods belong to.
	Workload Workload `json:"workload"`
	// Strategy is how it wants to be updated.
	Strategy Strategy `json:"strategy"`
	// Revisions are the two that the rollout goes between.
	Revisions Revisions `json:"revisions"`
	// Counts are its pods, by what they are.
	Counts Counts `json:"counts"`
	// Update is how many pods are to be moved to the update revision; negative
	// to be moved back to the current one (CS-01, updateNum).
	Update int `json:"update"`
	// Restart is true where the pods keep their revision and their containers are restarted
	// in place, because a user asked for it. Update is how many pods wait for that then.
	Restart bool `json:"restart,omitempty"`
	// MaxUnavailable is how many pods may be unavailable while they are moved
	// (CS-01, updateMaxUnavailable). It may be zero or less. With surge by node it is how
	// many nodes may have two pods.
	MaxUnavailable int `json:"maxUnavailable"`
	// Groups counts the pods by topology: dimension ("zone", "region"), value.
	Groups map[string]map[string]Group `json:"groups"`
}

// PlanOutput bounds what is disrupted now. The clamp in Go holds it to
// PlanInput.Update and PlanInput.MaxUnavailable, whatever it says.
type PlanOutput struct {
	// Limit is how many pods may be moved, in either direction.
	Limit int `json:"limit"`
	// MaxUnavailable is how many pods may be unavailable.
	MaxUnavailable int `json:"maxUnavailable"`
	// Holds stop new disruption. None means go.
	Holds []decision.Hold `json:"holds"`
	// Scatter has the terms to scatter by, after ranking.
	Scatter []ScatterTerm `json:"scatter"`
	// Unavailable says what becomes of candidates that are unavailable already: "First" has
	// those that the limit lets be moved go ahead of the others, within maxUnavailable;
	// "Always" has them all moved, since nothing becomes unavailable by it. If it is empty,
	// each waits for its turn.
	Unavailable string `json:"unavailable,omitempty"`
}

// What becomes of candidates that are unavailable already.
const (
	UnavailableFirst  = "First"
	UnavailableAlways = "Always"
)

// PlanPoint decides how far a rollout goes now. Controllers of workloads ask
// it whenever pods are to be moved: when the object or one of its pods changes,
// and at the time that a hold names. Without an answer it is held.
func PlanPoint() decision.Point[PlanInput, PlanOutput] {
	return decision.Point[PlanInput, PlanOutput]{
		Name: "rollout/plan", Budget: 100 * time.Millisecond, MaxResult: 20000,
		Fallback: func(in PlanInput) PlanOutput {
			return PlanOutput{Holds: []decision.Hold{
				decision.UndecidedHold("No policy could decide this rollout, so nothing new is started.", in),
			}}
		},
		Check: func(_ PlanInput, out PlanOutput) error {
			if out.Limit < 0 {
				return fmt.Errorf("limit is %d, want 0 or more", out.Limit)
			}
			switch out.Unavailable {
			case "", UnavailableFirst, UnavailableAlways:
				return nil
			}
			return fmt.Errorf("unavailable is %q, want %s, %s or nothing", out.Unavailable, UnavailableFirst, UnavailableAlways)
		},
		Lean: leanPlan,
	}
}

// leanPlan: fewer pods moved, fewer unavailable, and holds that reach more are
// stricter. Numbers count as far as the clamp in Go heeds them, and not at all
// where the whole workload is held.
func leanPlan(in PlanInput, then, now PlanOutput) decision.Strictness {
	heed := func(out PlanOutput) (limit, unavailable int) {
		return min(out.Limit, max(in.Update, -in.Update)), min(out.MaxUnavailable, in.MaxUnavailable)
	}
	out := decision.FewerHeld(then.Holds, now.Holds)
	if heldOr(Go, then.Holds) == Held || heldOr(Go, now.Holds) == Held {
		return out
	}
	limit, unavailable := heed(then)
	limitNow, unavailableNow := heed(now)
	out = decision.CombineStrictness(out, decision.CombineStrictness(decision.FewerIsStricter(limit, limitNow), decision.FewerIsStricter(unavailable, unavailableNow)))
	always := func(out PlanOutput) bool { return out.Unavailable == UnavailableAlways }
	return decision.CombineStrictness(out, decision.StrictnessOf(always(then) && !always(now), always(now) && !always(then)))
}
