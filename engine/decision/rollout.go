// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"time"
)

// Actions of rollout/change.
const (
	InPlace  = "InPlace"
	Recreate = "Recreate"
	Reject   = "Reject"
	// Wait leaves the pod as it is; the point is asked again within seconds.
	Wait = "Wait"
)

// Classes of a template difference.
const (
	ChangeImage     = "image"     // a container's image is replaced
	ChangeMetadata  = "metadata"  // a label or an annotation of the template
	ChangeResources = "resources" // a container's cpu or memory is replaced by a valid quantity
	ChangeOther     = "other"     // anything else
)

// ChangeInput asks how a pod may be brought from one template to another.
type ChangeInput struct {
	// Workload is what the pods belong to.
	Workload Workload `json:"workload"`
	// Policy is ReCreate, InPlaceIfPossible or InPlaceOnly.
	Policy string `json:"policy"`
	// From is the revision that the pod has.
	From string `json:"from"`
	// To is the revision that it is to have.
	To string `json:"to"`
	// Known is false when one of the two templates is gone from history.
	Known bool `json:"known"`
	// Changes are the difference of the two templates.
	Changes []TemplateChange `json:"changes"`
	// QoSChanged is true when the two templates have different QoS classes.
	QoSChanged bool `json:"qosChanged"`
	// ClaimsChanged is true when both revisions recorded their volume claim
	// templates and these differ.
	ClaimsChanged bool `json:"claimsChanged"`
	// EnvRefresh names the containers whose env reads changed metadata and whose
	// image stays: only a node agent can restart them.
	EnvRefresh []string `json:"envRefresh,omitempty"`
	// Gates are the feature gates.
	Gates ChangeGates `json:"gates"`
}

// ChangeGates are the feature gates that rollout/change depends on.
type ChangeGates struct {
	VerticalScaling     bool `json:"verticalScaling"`     // InPlaceWorkloadVerticalScaling
	RecreateOnNewClaims bool `json:"recreateOnNewClaims"` // RecreatePodWhenChangeVCTInCloneSetGate
	EnvFromMetadata     bool `json:"envFromMetadata"`     // InPlaceUpdateEnvFromMetadata
	// NodeAgent is true where a node agent restarts containers whose env reads
	// changed metadata (KruiseDaemon).
	NodeAgent bool `json:"nodeAgent"`
}

// TemplateChange is one operation of the difference between two templates.
type TemplateChange struct {
	// Class is image, metadata, resources or other.
	Class string `json:"class"`
	// Op is add, remove or replace, as in RFC 6902.
	Op string `json:"op"`
	// Path is below the template, e.g. /spec/containers/0/image.
	Path string `json:"path"`
	// Container is its name in the old template, for image and resources.
	Container string `json:"container,omitempty"`
}

// ChangeOutput is the way, and why.
type ChangeOutput struct {
	// Action is InPlace, Recreate, Reject, or Wait to leave the pod as it is for now.
	Action string `json:"action"`
	// Reason is CamelCase, for machines.
	Reason string `json:"reason"`
	// Message is a sentence, for people.
	Message string `json:"message"`
}

// RolloutChange decides whether a pod is updated in place or recreated.
// Controllers of workloads ask it for two revisions that differ, before they
// bring pods from one to the other. Without an answer the pod is left as it is, and the
// point is asked again.
func RolloutChange() Point[ChangeInput, ChangeOutput] {
	return Point[ChangeInput, ChangeOutput]{
		Name: "rollout/change", Budget: 100 * time.Millisecond, MaxResult: 1000,
		Fallback: func(ChangeInput) ChangeOutput {
			return ChangeOutput{
				Action: Wait, Reason: ReasonNoDecision,
				Message: "No policy could decide how to change this pod, so it stays as it is; the policies are asked again.",
			}
		},
		Check: func(_ ChangeInput, out ChangeOutput) error {
			switch out.Action {
			case InPlace, Recreate, Reject, Wait:
				return nil
			}
			return fmt.Errorf("action is %q, want %s, %s, %s or %s", out.Action, InPlace, Recreate, Reject, Wait)
		},
		Lean: leanChange,
	}
}

// leanChange: to reject a change or to wait is stricter than to make it in either way.
// In place and recreated are two ways of which neither is the stricter.
func leanChange(_ ChangeInput, then, now ChangeOutput) Strictness {
	acts := func(out ChangeOutput) bool { return out.Action == InPlace || out.Action == Recreate }
	return weigh(acts(then) && !acts(now), acts(now) && !acts(then))
}

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
	// MaxUnavailable is how many pods may be unavailable while they are moved
	// (CS-01, updateMaxUnavailable). It may be zero or less.
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
	Holds []Hold `json:"holds"`
	// Scatter has the terms to scatter by, after ranking.
	Scatter []ScatterTerm `json:"scatter"`
}

// RolloutPlan decides how far a rollout goes now. Controllers of workloads ask
// it whenever pods are to be moved: when the object or one of its pods changes,
// and at the time that a hold names. Without an answer it is held.
func RolloutPlan() Point[PlanInput, PlanOutput] {
	return Point[PlanInput, PlanOutput]{
		Name: "rollout/plan", Budget: 100 * time.Millisecond, MaxResult: 20000,
		Fallback: func(PlanInput) PlanOutput {
			return PlanOutput{Holds: []Hold{{
				Rule: RuleEngine, Reason: ReasonNoDecision,
				Message: "No policy could decide this rollout, so nothing new is started.",
			}}}
		},
		Check: func(_ PlanInput, out PlanOutput) error {
			if out.Limit < 0 {
				return fmt.Errorf("limit is %d, want 0 or more", out.Limit)
			}
			return nil
		},
		Lean: leanPlan,
	}
}

// leanPlan: fewer pods moved, fewer unavailable, and holds that reach more are
// stricter. Numbers count as far as the clamp in Go heeds them, and not at all
// where the whole workload is held.
func leanPlan(in PlanInput, then, now PlanOutput) Strictness {
	heed := func(out PlanOutput) (limit, unavailable int) {
		return min(out.Limit, max(in.Update, -in.Update)), min(out.MaxUnavailable, in.MaxUnavailable)
	}
	out := fewerHeld(then.Holds, now.Holds)
	if heldOr(Go, then.Holds) == Held || heldOr(Go, now.Holds) == Held {
		return out
	}
	limit, unavailable := heed(then)
	limitNow, unavailableNow := heed(now)
	return both(out, both(fewer(limit, limitNow), fewer(unavailable, unavailableNow)))
}

// RankInput asks for the place of each of some pods. Pods are independent of
// one another, so that each answer may be remembered.
type RankInput struct {
	// Workload is what the pods belong to.
	Workload Workload `json:"workload"`
	// Strategy is how it wants to be updated.
	Strategy Strategy `json:"strategy"`
	// Pods are those whose place is asked for.
	Pods []PodFacts `json:"pods"`
}

// PodFacts are the facts of one pod that its place depends on. They hold no
// time that passes: a pod that does not change keeps its facts.
type PodFacts struct {
	// Name of the pod.
	Name string `json:"name"`
	// Labels of the pod; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Node it is on.
	Node string `json:"node,omitempty"`
	// Zone of the node.
	Zone string `json:"zone,omitempty"`
	// Region of the node.
	Region string `json:"region,omitempty"`
	// Updated is true at the update revision.
	Updated bool `json:"updated"`
	// State is the lifecycle state, "" when it has none.
	State string `json:"state,omitempty"`
	// Assigned is 1 on a node, else 0.
	Assigned int `json:"assigned"`
	// Phase is 0 Pending, 1 Unknown, 2 Running.
	Phase int `json:"phase"`
	// Ready is 1 when running and ready, else 0.
	Ready int `json:"ready"`
	// ReadySince is in seconds since 1970; 0 when not ready, and 2^53-1 (MaxTime)
	// where the object has no time.
	ReadySince int64 `json:"readySince"`
	// Created is in seconds since 1970; 2^53-1 where the object has no time.
	Created int64 `json:"created"`
	// Restarts is the highest restart count of a container.
	Restarts int `json:"restarts"`
	// Matches has the indices of the weightPriority terms that select the pod.
	Matches []int `json:"matches,omitempty"`
	// OrderLevel is the index of the first orderPriority term whose key the pod
	// has, -1 if none.
	OrderLevel int `json:"orderLevel"`
	// OrderValue is the number that the value of that key ends with.
	OrderValue int `json:"orderValue"`
	// DeletionCost is controller.kubernetes.io/pod-deletion-cost, 0 if invalid.
	DeletionCost int `json:"deletionCost"`
}

// MaxTime stands for a time that is not known, sorted after all that are: the
// largest integer that JSON numbers hold exactly.
const MaxTime int64 = 1<<53 - 1

// RankOutput gives each pod its place, by position in RankInput.Pods.
type RankOutput struct {
	// Keys are compared element by element; the lower goes first. All are of
	// one length.
	Keys [][]float64 `json:"keys"`
	// Descending lists the positions in a key where the higher goes first.
	Descending []int `json:"descending"`
	// Lead has a second key, compared ahead of Keys, but only after the order
	// was scattered: what must be first or last whatever the order is.
	Lead [][]float64 `json:"lead"`
	// Holds stop single pods; each names its pod.
	Holds []Hold `json:"holds"`
}

// RolloutRank decides the order of pods. Controllers of workloads ask it for the
// candidates of a rollout whose facts changed, many at a time; answers about the
// others are remembered. Without an answer pods have the order of the strategy (A-13,
// A-14), computed in Go from the facts; where a rule of users takes part, each is held.
func RolloutRank() Point[RankInput, RankOutput] {
	return Point[RankInput, RankOutput]{
		Name: "rollout/rank", Budget: 2 * time.Second, MaxResult: 1 << 20, MaxBytes: 4 << 20,
		Fallback:       strategyOrder,
		StrictFallback: func(in RankInput) RankOutput { return holdEach(strategyOrder(in), in.Pods) },
		Check: func(in RankInput, out RankOutput) error {
			if err := checkKeys("keys", len(in.Pods), out.Keys); err != nil {
				return err
			}
			return checkKeys("lead", len(in.Pods), out.Lead)
		},
		// More pods held is stricter; another order is neither.
		Lean: func(_ RankInput, then, now RankOutput) Strictness { return fewerHeld(then.Holds, now.Holds) },
	}
}

// strategyOrder is the order that the strategy alone gives: by weight or by order
// then the default order.
func strategyOrder(in RankInput) RankOutput {
	out := RankOutput{Keys: make([][]float64, len(in.Pods)), Lead: make([][]float64, len(in.Pods))}
	before := 0
	switch {
	case len(in.Strategy.Weights) > 0:
		before, out.Descending = 1, []int{0}
	case len(in.Strategy.OrderKeys) > 0:
		before, out.Descending = 2, []int{1}
	}
	out.Descending = append(out.Descending, before+3, before+4, before+5)
	for i, p := range in.Pods {
		key := make([]float64, 0, before+6)
		switch before {
		case 1:
			weight := 0
			for _, term := range p.Matches {
				if term >= 0 && term < len(in.Strategy.Weights) {
					weight += in.Strategy.Weights[term]
				}
			}
			key = append(key, float64(weight))
		case 2:
			key = append(key, float64(p.OrderLevel), float64(p.OrderValue))
		}
		out.Keys[i] = append(key, float64(p.Assigned), float64(p.Phase), float64(p.Ready), float64(p.ReadySince), float64(p.Restarts), float64(p.Created))
		out.Lead[i] = []float64{0}
		if p.State == "PreparingUpdate" { // CS-09
			out.Lead[i][0] = -1
		}
	}
	return out
}

// holdEach holds each of some pods, because nothing is known of the rules that could.
func holdEach(out RankOutput, pods []PodFacts) RankOutput {
	for _, p := range pods {
		out.Holds = append(out.Holds, Hold{
			Rule: RuleEngine, Reason: ReasonNoDecision, Pod: p.Name,
			Message: "The policies that may hold this pod did not answer, so it is held until they do.",
		})
	}
	return out
}

func checkKeys(field string, pods int, keys [][]float64) error {
	if len(keys) != pods {
		return fmt.Errorf("%s has %d entries for %d pods", field, len(keys), pods)
	}
	for i, k := range keys {
		if len(k) != len(keys[0]) {
			return fmt.Errorf("%s[%d] has %d elements, %s[0] has %d", field, i, len(k), field, len(keys[0]))
		}
	}
	return nil
}

// RowsInput is the plan's question together with every candidate. Only bundles
// that define the point are asked, because it costs more.
type RowsInput struct {
	// Plan is the whole question of rollout/plan.
	Plan PlanInput `json:"plan"`
	// Rows are the candidates, in the order of rank and scatter.
	Rows []PodFacts `json:"rows"`
}

// RowsOutput names the pods to take, first to last; pods not named are held.
type RowsOutput struct {
	// Order has the names of pods.
	Order []string `json:"order"`
}

// RolloutRows lets a policy order all candidates at once. There is no built-in
// one: controllers of workloads ask it after the plan and the ranks, where a
// bundle of the platform has it, and only there. Without an answer nothing new is started.
func RolloutRows() Point[RowsInput, RowsOutput] {
	return Point[RowsInput, RowsOutput]{
		Name: "rollout/rows", Budget: 2 * time.Second, MaxResult: 200000, MaxBytes: 16 << 20,
		Fallback: func(RowsInput) RowsOutput { return RowsOutput{} },
		// Pods that are not named are held, so fewer are stricter; another order is
		// neither.
		Lean: func(_ RowsInput, then, now RowsOutput) Strictness {
			return weigh(!named(now.Order, then.Order), !named(then.Order, now.Order))
		},
	}
}
