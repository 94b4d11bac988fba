// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Results of a probe.
const (
	ProbeSucceeded = "Succeeded"
	ProbeFailed    = "Failed"
	ProbeUnknown   = "Unknown"
)

// Statuses of a condition.
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

// MarkersInput asks what the results of the probes of a pod mean for the pod (PPM-04,
// PPM-05).
type MarkersInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Namespace of the pod and of the PodProbeMarkers.
	Namespace string `json:"namespace"`
	// Pod is the one that was probed.
	Pod Pod `json:"pod"`
	// Serverless is true where the node has no node agent, so that the results are
	// conditions that the pod has already.
	Serverless bool `json:"serverless"`
	// Results are those of the probes that have one, by the name of the PodProbeMarker and
	// then in its order.
	Results []ProbeResult `json:"results"`
}

// ProbeResult is the result of one probe of a PodProbeMarker.
type ProbeResult struct {
	// Marker is the name of the PodProbeMarker.
	Marker string `json:"marker"`
	// Probe is the name of the probe in it.
	Probe string `json:"probe"`
	// Container is the one that was probed.
	Container string `json:"container"`
	// State is Succeeded, Failed or Unknown.
	State string `json:"state"`
	// Message is what the probe answered, or why it failed.
	Message string `json:"message,omitempty"`
	// Since is when the state last changed, in nanoseconds since 1970; 0 if that is not known.
	Since int64 `json:"since"`
	// ConditionType is the condition of the pod that holds the result, if the probe has one.
	ConditionType string `json:"conditionType,omitempty"`
	// Policies are what the PodProbeMarker says of labels and annotations.
	Policies []MarkerPolicy `json:"policies"`
}

// MarkerPolicy is what a pod gets while the result is State.
type MarkerPolicy struct {
	// State is Succeeded or Failed.
	State string `json:"state"`
	// Labels that the pod gets.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations that the pod gets.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// MarkersOutput says what the pod gets and loses. The clamp in Go leaves out conditions,
// labels and annotations that none of the PodProbeMarkers names, whatever it says.
type MarkersOutput struct {
	// Conditions that the pod gets.
	Conditions []MarkerCondition `json:"conditions"`
	// Labels that the pod gets.
	Labels map[string]string `json:"labels"`
	// Annotations that the pod gets.
	Annotations map[string]string `json:"annotations"`
	// RemoveLabels are keys that the pod loses.
	RemoveLabels []string `json:"removeLabels"`
	// RemoveAnnotations are keys that the pod loses.
	RemoveAnnotations []string `json:"removeAnnotations"`
	// Holds leave the pod as it is for now. None means go.
	Holds []decision.Hold `json:"holds"`
}

// MarkerCondition is a condition of a pod.
type MarkerCondition struct {
	// Type of the condition.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status string `json:"status"`
	// Message is for people.
	Message string `json:"message,omitempty"`
}

// MarkersPoint decides what the results of the probes of a pod mean for the pod. The
// manager asks it when a node reports a result or a PodProbeMarker changes. Without an
// answer the pod keeps the conditions, labels and annotations that it has.
func MarkersPoint() decision.Point[MarkersInput, MarkersOutput] {
	return decision.Point[MarkersInput, MarkersOutput]{
		Name: "node/markers", Budget: 100 * time.Millisecond, MaxResult: 20_000,
		Fallback: func(MarkersInput) MarkersOutput {
			return MarkersOutput{Labels: map[string]string{}, Annotations: map[string]string{}, Holds: []decision.Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy could decide what the results of the probes mean, so the pod keeps its conditions, labels and annotations.",
			}}}
		},
		Check: checkMarkers,
		Lean: func(_ MarkersInput, then, now MarkersOutput) decision.Strictness {
			return decision.FewerIsStricter(-min(len(then.Holds), 1), -min(len(now.Holds), 1))
		},
	}
}

func checkMarkers(_ MarkersInput, out MarkersOutput) error {
	for _, c := range out.Conditions {
		if c.Status != True && c.Status != False && c.Status != Unknown {
			return fmt.Errorf("condition %s is %q, want True, False or Unknown", c.Type, c.Status)
		}
	}
	for _, h := range out.Holds {
		if h.Reason == "" || h.Message == "" {
			return fmt.Errorf("a hold of rule %s has no reason or no message", h.Rule)
		}
	}
	return nil
}

// ClampAnswer is the answer as far as the PodProbeMarkers name what it changes: the clamp. What
// is set is not removed.
func (o MarkersOutput) ClampAnswer(in MarkersInput) MarkersOutput {
	if len(o.Holds) > 0 {
		return MarkersOutput{Holds: o.Holds}
	}
	types, labels, annotations := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range in.Results {
		types[in.Results[i].ConditionType] = in.Results[i].ConditionType != ""
		for _, p := range in.Results[i].Policies {
			for key := range p.Labels {
				labels[key] = true
			}
			for key := range p.Annotations {
				annotations[key] = true
			}
		}
	}
	out := MarkersOutput{Labels: keepKnownKeys(o.Labels, labels), Annotations: keepKnownKeys(o.Annotations, annotations)}
	for _, c := range o.Conditions {
		if types[c.Type] {
			types[c.Type] = false // once
			out.Conditions = append(out.Conditions, c)
		}
	}
	out.RemoveLabels = removableKeys(o.RemoveLabels, labels, out.Labels)
	out.RemoveAnnotations = removableKeys(o.RemoveAnnotations, annotations, out.Annotations)
	return out
}

func keepKnownKeys(set map[string]string, known map[string]bool) map[string]string {
	out := maps.Clone(set)
	maps.DeleteFunc(out, func(key, _ string) bool { return !known[key] })
	return out
}

func removableKeys(keys []string, known map[string]bool, set map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		_, stays := set[key]
		return stays || !known[key]
	})
}
