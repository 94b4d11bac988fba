// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// ScaleInput asks how many pods to create or delete now (CS-01,
// CS-04 to CS-07). The differences are computed in Go; a policy limits them.
type ScaleInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Workload is what the pods belong to.
	Workload Workload `json:"workload"`
	// Strategy is how it wants to be updated.
	Strategy Strategy `json:"strategy"`
	// Revisions are the two that the rollout goes between.
	Revisions Revisions `json:"revisions"`
	// Counts are its pods, by what they are.
	Counts Counts `json:"counts"`
	// Up is how many pods are missing.
	Up int `json:"up"`
	// UpCurrent is how many of them are missing at the current revision.
	UpCurrent int `json:"upCurrent"`
	// UpdateHeld is true when policies hold the whole of the update: pods beyond the
	// replicas, which it wants by its surge, would be of the revision that is held.
	UpdateHeld bool `json:"updateHeld"`
	// UpWithoutSurge is how many pods are missing where an update has no surge.
	UpWithoutSurge int `json:"upWithoutSurge"`
	// UpCurrentWithoutSurge is how many of these are missing at the current revision.
	UpCurrentWithoutSurge int `json:"upCurrentWithoutSurge"`
	// TotalUnavailable counts pods that are unavailable or preparing delete.
	TotalUnavailable int `json:"totalUnavailable"`
	// Down is how many pods are too many.
	Down int `json:"down"`
	// DownCurrent is how many of them are to be taken from the current revision
	// first.
	DownCurrent int `json:"downCurrent"`
	// ReadyLimit is how many ready pods may be deleted.
	ReadyLimit int `json:"readyLimit"`
	// PlannedDeletes counts pods whose deletion has been asked for already.
	PlannedDeletes int `json:"plannedDeletes"`
	// Awaited counts the missing pods that cannot be created yet, because a terminating
	// pod still has their name and volume claims.
	Awaited int `json:"awaited"`
	// Needed is how many pods that prepare their deletion are needed after all.
	Needed int `json:"needed"`
	// NeededUpdated is how many of them may be of the update revision.
	NeededUpdated int `json:"neededUpdated"`
	// Preparing are the pods that prepare their deletion and were not asked to go, by
	// the labels or the spec; empty when Needed is 0.
	Preparing []PreparingFacts `json:"preparing,omitempty"`
	// Pods are the candidates of a scale-in; empty when Down is 0.
	Pods []VictimFacts `json:"pods"`
}

// PreparingFacts are the facts of a pod in the lifecycle state PreparingDelete.
type PreparingFacts struct {
	PodFacts `json:",inline"`
	// MarkedNotReady is true when the hook that the pod waits for had it marked not
	// ready. Nothing takes that mark off a pod that stays.
	MarkedNotReady bool `json:"markedNotReady"`
}

// VictimFacts are the facts of a pod that may be deleted by a scale-in.
type VictimFacts struct {
	PodFacts `json:",inline"`
	// Available is 1 when the pod is available (CS-02), else 0.
	Available int `json:"available"`
}

// Which planned deletions go on.
const (
	PlannedNone     = "None"
	PlannedPrepared = "Prepared"
	PlannedAll      = "All"
)

// planned has how many deletions go on: the more, the higher.
var planned = map[string]int{PlannedNone: 0, PlannedPrepared: 1, PlannedAll: 2}

// ScaleOutput bounds creation and deletion. The clamp in Go holds it to the
// numbers of the question.
type ScaleOutput struct {
	// Create is how many pods to create.
	Create int `json:"create"`
	// CreateCurrent is how many of them are to be of the current revision.
	CreateCurrent int `json:"createCurrent"`
	// Delete is how many pods to delete.
	Delete int `json:"delete"`
	// DeleteCurrent is how many of them to take from the current revision first.
	DeleteCurrent int `json:"deleteCurrent"`
	// Keep names the pods that come back from preparing their deletion, in the order in
	// which they do. Go takes as many of them as are needed.
	Keep []string `json:"keep"`
	// Planned says which deletions that were asked for or prepared go on in this round:
	// None, those that are Prepared, or All.
	Planned string `json:"planned"`
	// Keys order the victims, by position in the question's pods: the lowest is
	// deleted first. Between Keys and Then, Go compares how well a pod spreads
	// the workload over nodes and topology (CS-07), which a policy cannot.
	Keys [][]float64 `json:"keys"`
	// Then has what is compared after that, by position as well.
	Then [][]float64 `json:"then"`
	// Descending lists the positions, in Keys followed by Then, where the higher
	// goes first.
	Descending []int `json:"descending"`
	// Holds say why fewer are created or deleted than are missing or too many.
	Holds []decision.Hold `json:"holds"`
}

// ScalePoint decides scaling. Controllers of workloads ask it when pods are missing or too
// many, or when deletions were asked for or prepared. Without an answer missing pods are
// created, as far as the strategy allows, and a scale-in deletes none; deletions that were
// asked for go on where no pod is missing or needed after all. Where a bundle replaces the
// point, nothing is created or deleted until it answers.
func ScalePoint() decision.Point[ScaleInput, ScaleOutput] {
	return decision.Point[ScaleInput, ScaleOutput]{
		Name: "rollout/scale", Budget: 2 * time.Second, MaxResult: 1 << 20,
		Fallback: undecidedScale,
		StrictFallback: func(in ScaleInput) ScaleOutput {
			return ScaleOutput{Planned: PlannedNone, Holds: []decision.Hold{
				decision.UndecidedHold("The policy that replaces the built-in one did not answer, so no pod is created or deleted until it does.", in),
			}}
		},
		Check: checkScale,
		Lean:  leanScale,
	}
}

// undecidedScale leaves the bounds of creation to the clamp.
func undecidedScale(in ScaleInput) ScaleOutput {
	out := ScaleOutput{Create: in.Up, CreateCurrent: in.UpCurrent, Planned: PlannedAll}
	if in.UpdateHeld {
		out.Create, out.CreateCurrent = in.UpWithoutSurge, in.UpCurrentWithoutSurge
	}
	if in.Up > 0 || in.Needed > 0 {
		out.Planned = PlannedNone
	}
	if in.Down > 0 {
		out.Holds = []decision.Hold{decision.UndecidedHold("No policy could decide which pods to delete, so none is.", in)}
	}
	return out
}

func checkScale(in ScaleInput, out ScaleOutput) error {
	if out.Create < 0 || out.CreateCurrent < 0 || out.Delete < 0 || out.DeleteCurrent < 0 {
		return fmt.Errorf("create, createCurrent, delete and deleteCurrent must be 0 or more")
	}
	if _, ok := planned[out.Planned]; !ok {
		return fmt.Errorf("planned is %q, want %s, %s or %s", out.Planned, PlannedNone, PlannedPrepared, PlannedAll)
	}
	if out.Delete == 0 {
		return nil
	}
	if err := checkKeys("keys", len(in.Pods), out.Keys); err != nil {
		return err
	}
	return checkKeys("then", len(in.Pods), out.Then)
}

// leanScale: fewer pods deleted and fewer created are stricter, because that is
// what a hold of scaling does. Which ones, and of which revision, is neither.
func leanScale(_ ScaleInput, then, now ScaleOutput) decision.Strictness {
	return decision.CombineStrictness(
		decision.FewerIsStricter(planned[then.Planned], planned[now.Planned]),
		decision.CombineStrictness(decision.FewerIsStricter(then.Delete, now.Delete), decision.FewerIsStricter(then.Create, now.Create)))
}
