// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"
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
	// Pods are the candidates of a scale-in; empty when Down is 0.
	Pods []VictimFacts `json:"pods"`
}

// VictimFacts are the facts of a pod that may be deleted by a scale-in.
type VictimFacts struct {
	PodFacts `json:",inline"`
	// Available is 1 when the pod is available (CS-02), else 0.
	Available int `json:"available"`
}

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
	Holds []Hold `json:"holds"`
}

// RolloutScale decides scaling. Controllers of workloads ask it when pods are
// missing or too many. Without an answer missing pods are created, as far as the
// strategy allows, and none is deleted; where a bundle replaces the point, none is created
// either.
func RolloutScale() Point[ScaleInput, ScaleOutput] {
	return Point[ScaleInput, ScaleOutput]{
		Name: "rollout/scale", Budget: 2 * time.Second, MaxResult: 1 << 20,
		Fallback: func(in ScaleInput) ScaleOutput {
			out := ScaleOutput{Create: in.Up, CreateCurrent: in.UpCurrent} // the clamp bounds it
			if in.UpdateHeld {
				out = ScaleOutput{Create: in.UpWithoutSurge, CreateCurrent: in.UpCurrentWithoutSurge}
			}
			if in.Down > 0 {
				out.Holds = []Hold{{Rule: RuleEngine, Reason: ReasonNoDecision, Message: "No policy could decide which pods to delete, so none is."}}
			}
			return out
		},
		StrictFallback: func(ScaleInput) ScaleOutput {
			return ScaleOutput{Holds: []Hold{{
				Rule: RuleEngine, Reason: ReasonNoDecision,
				Message: "The policy that replaces the built-in one did not answer, so no pod is created or deleted until it does.",
			}}}
		},
		Check: func(in ScaleInput, out ScaleOutput) error {
			if out.Create < 0 || out.CreateCurrent < 0 || out.Delete < 0 || out.DeleteCurrent < 0 {
				return fmt.Errorf("create, createCurrent, delete and deleteCurrent must be 0 or more")
			}
			if out.Delete == 0 {
				return nil
			}
			if err := checkKeys("keys", len(in.Pods), out.Keys); err != nil {
				return err
			}
			return checkKeys("then", len(in.Pods), out.Then)
		},
		Lean: leanScale,
	}
}

// leanScale: fewer pods deleted and fewer created are stricter, because that is
// what a hold of scaling does. Which ones, and of which revision, is neither.
func leanScale(_ ScaleInput, then, now ScaleOutput) Strictness {
	return both(fewer(then.Delete, now.Delete), fewer(then.Create, now.Create))
}
