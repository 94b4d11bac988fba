package decision

import (
	"fmt"
	"time"
)

// ScaleInput asks how many pods to create or delete now (decisions.md CS-01,
// CS-04 to CS-07). The differences are computed in Go; a policy limits them.
type ScaleInput struct {
	Now       int64     `json:"now"`
	Workload  Workload  `json:"workload"`
	Strategy  Strategy  `json:"strategy"`
	Revisions Revisions `json:"revisions"`
	Counts    Counts    `json:"counts"`
	// Up is how many pods are missing; UpCurrent how many of them are missing
	// at the current revision.
	Up        int `json:"up"`
	UpCurrent int `json:"upCurrent"`
	// TotalUnavailable counts pods that are unavailable or preparing delete.
	TotalUnavailable int `json:"totalUnavailable"`
	// Down is how many pods are too many; DownCurrent how many of them are to
	// be taken from the current revision first.
	Down        int `json:"down"`
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
	// Create is how many pods to create, CreateCurrent how many of them from
	// the current revision.
	Create        int `json:"create"`
	CreateCurrent int `json:"createCurrent"`
	// Delete is how many pods to delete, DeleteCurrent how many of them to take
	// from the current revision first.
	Delete        int `json:"delete"`
	DeleteCurrent int `json:"deleteCurrent"`
	// Keys order the victims, by position in ScaleInput.Pods: the lowest is
	// deleted first. Between Keys and Then, Go compares how well a pod spreads
	// the workload over nodes and topology (CS-07), which a policy cannot.
	Keys       [][]float64 `json:"keys"`
	Then       [][]float64 `json:"then"`
	Descending []int       `json:"descending"` // positions in Keys followed by Then
	// Holds say why fewer are created or deleted than are missing or too many.
	Holds []Hold `json:"holds"`
}

// RolloutScale decides scaling. Without an answer missing pods are created, as
// far as the strategy allows, and none is deleted.
func RolloutScale() Point[ScaleInput, ScaleOutput] {
	return Point[ScaleInput, ScaleOutput]{
		Name: "rollout/scale", Budget: 2 * time.Second, MaxResult: 1 << 20,
		Fallback: func(in ScaleInput) ScaleOutput {
			create := min(in.Up, max(in.Strategy.ScaleMaxUnavailable-in.TotalUnavailable, 0))
			out := ScaleOutput{Create: create, CreateCurrent: min(create, in.UpCurrent)}
			if in.Down > 0 {
				out.Holds = []Hold{{Rule: "engine", Reason: "NoDecision", Message: "No policy could decide which pods to delete, so none is."}}
			}
			return out
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
func leanScale(_ ScaleInput, then, now ScaleOutput) Leaning {
	return both(fewer(then.Delete, now.Delete), fewer(then.Create, now.Create))
}
