// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// PersistentInput asks in which topology a new pod is to run whose name a PersistentPodState
// remembers (PPS-04).
type PersistentInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// State is the name of the PersistentPodState.
	State string `json:"state"`
	// Pod is the new pod.
	Pod ReturningPod `json:"pod"`
	// Recorded is where a pod of that name was last ready.
	Recorded Recorded `json:"recorded"`
	// Required are the keys of node labels whose values the pod must find again.
	Required []string `json:"required"`
	// Preferred are the terms whose values the pod finds again if it can.
	Preferred []Preference `json:"preferred"`
}

// ReturningPod is a pod that is created.
type ReturningPod struct {
	// Name of the pod.
	Name string `json:"name"`
	// Namespace of the pod.
	Namespace string `json:"namespace"`
	// Labels of the pod; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pod; there are none if it has none.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Recorded is what is remembered of a pod.
type Recorded struct {
	// Node is where it was.
	Node string `json:"node"`
	// Labels of that node, of the keys that the PersistentPodState names.
	Labels map[string]string `json:"labels"`
	// Gone is true when there is no such node any more.
	Gone bool `json:"gone,omitempty"`
	// Ready is whether that node is ready.
	Ready bool `json:"ready"`
	// Unschedulable is true while that node takes no new pods: it is cordoned.
	Unschedulable bool `json:"unschedulable,omitempty"`
}

// Preference is a preferred term of a PersistentPodState.
type Preference struct {
	// Weight is from 1 to 100.
	Weight int32 `json:"weight"`
	// Keys of node labels.
	Keys []string `json:"keys"`
}

// PersistentOutput is the topology that the pod asks for. The clamp in Go leaves out what is not
// remembered.
type PersistentOutput struct {
	// NodeSelector is what the node of the pod must have.
	NodeSelector map[string]string `json:"nodeSelector"`
	// Preferred is what the node has if there is one.
	Preferred []Preferred `json:"preferred"`
	// Holds have the pod ask for all that is remembered, whatever denials say.
	Holds []Hold `json:"holds"`
	// Denials are why the pod does not ask for the topology.
	Denials []Denial `json:"denials"`
}

// Preferred is a preferred term of a pod.
type Preferred struct {
	// Weight is from 1 to 100.
	Weight int32 `json:"weight"`
	// Labels that the node has.
	Labels map[string]string `json:"labels"`
}

// PersistentPoint decides where a pod that is remembered comes back. The webhook of pods asks it
// when the pod is created. Without an answer the pod asks for all that is remembered: its data may
// be there.
func PersistentPoint() decision.Point[PersistentInput, PersistentOutput] {
	return decision.Point[PersistentInput, PersistentOutput]{
		Name: "placement/persistent", Budget: 100 * time.Millisecond,
		Fallback: func(in PersistentInput) PersistentOutput {
			out := in.rememberedTopology()
			out.Holds = []Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy could decide where the pod comes back, so it asks for all that is remembered.",
			}}
			return out
		},
		Check: func(_ PersistentInput, out PersistentOutput) error {
			for i, p := range out.Preferred {
				if p.Weight < 1 || p.Weight > 100 {
					return fmt.Errorf("preferred[%d].weight is %d, and must be from 1 to 100", i, p.Weight)
				}
			}
			return checkPlaces("", nil, nil, out.Holds, out.Denials)
		},
		Lean: func(in PersistentInput, then, now PersistentOutput) decision.Strictness {
			a, b := then.ClampAnswer(in), now.ClampAnswer(in)
			return decision.StrictnessOf(len(b.NodeSelector) < len(a.NodeSelector), len(b.NodeSelector) > len(a.NodeSelector))
		},
	}
}

// rememberedTopology is what is remembered.
func (in PersistentInput) rememberedTopology() PersistentOutput {
	out := PersistentOutput{NodeSelector: in.rememberedLabels(in.Required)}
	for _, p := range in.Preferred {
		if labels := in.rememberedLabels(p.Keys); len(labels) > 0 {
			out.Preferred = append(out.Preferred, Preferred{Weight: p.Weight, Labels: labels})
		}
	}
	return out
}

// rememberedLabels are those that are remembered of some keys.
func (in PersistentInput) rememberedLabels(keys []string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if value, known := in.Recorded.Labels[key]; known {
			out[key] = value
		}
	}
	return out
}

// ClampAnswer is what the pod asks for: the clamp. It is nothing that is not remembered.
func (o PersistentOutput) ClampAnswer(in PersistentInput) PersistentOutput {
	known := func(labels map[string]string) map[string]string {
		out := map[string]string{}
		for key, value := range labels {
			if in.Recorded.Labels[key] == value {
				out[key] = value
			}
		}
		return out
	}
	out := PersistentOutput{NodeSelector: known(o.NodeSelector)}
	for _, p := range o.Preferred {
		if labels := known(p.Labels); len(labels) > 0 {
			out.Preferred = append(out.Preferred, Preferred{Weight: p.Weight, Labels: labels})
		}
	}
	return out
}

// ToVerdict implements decision.Judged.
func (o PersistentOutput) ToVerdict() decision.Verdict {
	v := addReasons(decision.Verdict{Word: Wait}, nil, o.Denials)
	if len(o.NodeSelector)+len(o.Preferred) > 0 {
		v.Word = Go
	}
	for _, h := range o.Holds {
		v.Reasons = append(v.Reasons, decision.Hold{Rule: h.Rule, Reason: h.Reason, Message: h.Message})
	}
	return v
}

// SetDefaultRules implements decision.Originated.
func (o *PersistentOutput) SetDefaultRules(pkg string) { setDefaultRules(pkg, o.Holds, o.Denials) }
