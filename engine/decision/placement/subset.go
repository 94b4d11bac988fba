// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// SubsetInput asks which subset of a WorkloadSpread a pod that is created goes to (WS-02,
// WS-03).
type SubsetInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Spread is the WorkloadSpread.
	Spread Spread `json:"spread"`
	// Pod is the one that is created.
	Pod NewPod `json:"pod"`
	// Subsets in the order of the spec.
	Subsets []SpreadSubset `json:"subsets"`
}

// Spread is a WorkloadSpread.
type Spread struct {
	// Name of the WorkloadSpread.
	Name string `json:"name"`
	// Namespace of the WorkloadSpread and the pods.
	Namespace string `json:"namespace"`
	// Labels of the WorkloadSpread; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the WorkloadSpread, but for what kubectl apply notes there.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Kind of the workload whose pods are spread, and its name.
	Kind string `json:"kind"`
	// Workload is the name of the workload.
	Workload string `json:"workload"`
}

// NewPod is a pod that is created.
type NewPod struct {
	// Name of the pod, or what it will begin with.
	Name string `json:"name"`
	// Labels of the pod; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Version is that of the workload that counts by itself; left out if all count together.
	Version string `json:"version,omitempty"`
	// Ordinal is that of the pod of a StatefulSet; left out for others.
	Ordinal *int `json:"ordinal,omitempty"`
}

// SpreadSubset is a subset of a WorkloadSpread.
type SpreadSubset struct {
	// Name of the subset.
	Name string `json:"name"`
	// Nodes are the values that it requires of labels of its nodes, such as
	// {"topology.kubernetes.io/zone": ["b"]}.
	Nodes map[string][]string `json:"nodes,omitempty"`
	// Max is how many pods it may have; left out if there is no limit.
	Max *int `json:"max,omitempty"`
	// Pods is how many it has, with those that are being created and without those that go.
	Pods int `json:"pods"`
	// Unschedulable is true while its pods find no node.
	Unschedulable bool `json:"unschedulable,omitempty"`
}

// SubsetOutput says which subset a pod goes to. The clamp in Go puts no pod into a subset
// that is full, whatever it says.
type SubsetOutput struct {
	// Subset is its name; empty if the pod goes to none, and is created as it is.
	Subset string `json:"subset"`
	// Holds put the pod into no subset, or not into that of their target. None means go.
	Holds []Hold `json:"holds"`
	// Denials are of subsets that get no pods, or no more than there is room for.
	Denials []Denial `json:"denials"`
}

// SubsetPoint decides which subset of a WorkloadSpread a new pod goes to. The webhook of pods
// asks it for each pod of a workload that is spread. Without an answer the pod goes to none,
// and is created as it is.
func SubsetPoint() decision.Point[SubsetInput, SubsetOutput] {
	return decision.Point[SubsetInput, SubsetOutput]{
		Name: "placement/subset", Budget: 200 * time.Millisecond, MaxResult: 20_000,
		Fallback: func(SubsetInput) SubsetOutput {
			return SubsetOutput{Holds: []Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy could decide which subset the pod goes to, so it is created as it is.",
			}}}
		},
		Check: checkSubset,
		Lean: func(in SubsetInput, then, now SubsetOutput) decision.Strictness {
			a, b := then.PermittedSubset(in), now.PermittedSubset(in)
			return decision.StrictnessOf(a != "" && b == "", a == "" && b != "")
		},
	}
}

func checkSubset(in SubsetInput, out SubsetOutput) error {
	if out.Subset != "" && !slices.ContainsFunc(in.Subsets, func(s SpreadSubset) bool { return s.Name == out.Subset }) {
		return fmt.Errorf("subset is %q, which the WorkloadSpread does not have", out.Subset)
	}
	for i, h := range out.Holds {
		if h.Reason == "" || h.Message == "" {
			return fmt.Errorf("holds[%d] of rule %s has no reason or no message", i, h.Rule)
		}
	}
	for i, d := range out.Denials {
		if d.Reason == "" || d.Message == "" {
			return fmt.Errorf("denials[%d] of rule %s has no reason or no message", i, d.Rule)
		}
	}
	return nil
}

// PermittedSubset is the subset of an answer, if it has room and nothing keeps the pod out of it: the
// clamp.
func (o SubsetOutput) PermittedSubset(in SubsetInput) string {
	below := 0
	for _, s := range in.Subsets {
		if in.Pod.Ordinal != nil && !s.Unschedulable && s.Max != nil {
			below += *s.Max
		}
		if s.Name != o.Subset {
			continue
		}
		full := s.Max != nil && s.Pods >= *s.Max
		if in.Pod.Ordinal != nil { // ordinals say which pods a subset has
			full = s.Max != nil && *in.Pod.Ordinal >= below
		}
		if full || o.keptOut(s) {
			return ""
		}
		return s.Name
	}
	return ""
}

func (o SubsetOutput) keptOut(s SpreadSubset) bool {
	for i := range o.Holds {
		if t := o.Holds[i].Target; t == "" || t == s.Name {
			return true
		}
	}
	for i := range o.Denials {
		if d := &o.Denials[i]; (d.Target == "" || d.Target == s.Name) && s.Pods >= d.allowedRoom() {
			return true
		}
	}
	return false
}

// ToVerdict implements decision.Judged.
func (o SubsetOutput) ToVerdict() decision.Verdict {
	word := o.Subset
	if word == "" {
		word = "None"
	}
	return addReasons(decision.Verdict{Word: word}, o.Holds, o.Denials)
}

// SetDefaultRules implements decision.Originated.
func (o *SubsetOutput) SetDefaultRules(pkg string) { setDefaultRules(pkg, o.Holds, o.Denials) }
