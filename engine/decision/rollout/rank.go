// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

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
	// Name of the pod. Pods of a cluster-scoped workload, such as a SidecarSet, may have one name
	// in several namespaces.
	Name string `json:"name"`
	// Namespace it is in.
	Namespace string `json:"namespace,omitempty"`
	// NamespacedName is the namespace and the name with a slash in between, such as shop/web-0. No
	// two pods have it in common.
	NamespacedName string `json:"namespacedName,omitempty"`
	// NamespaceLabels are the labels of the namespace, of pods of a cluster-scoped workload.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// Labels of the pod; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Ordinal is the number at the end of the name, of kinds that number their pods.
	Ordinal *int `json:"ordinal,omitempty"`
	// Node it is on, or is to be on.
	Node string `json:"node,omitempty"`
	// OnNode has facts of that node; there are none before the pod has a node, nor while the node is not known.
	OnNode *NodeFacts `json:"onNode,omitempty"`
	// MissingFacts are the facts of this pod that could not be read, such as those of its node.
	MissingFacts []decision.MissingFact `json:"missingFacts,omitempty"`
	// Pulls are the images of the update revision that are pulled ahead on that node and that
	// it does not have yet; there are none once it has them all, or nothing is pulled ahead.
	Pulls []ImagePull `json:"pulls,omitempty"`
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

// NodeFacts are the facts of a node that the place of its pod depends on.
type NodeFacts struct {
	// Labels of the node, for kinds that have a pod on each node. For other kinds there are none, since
	// a label would be in the facts of each pod on the node.
	Labels map[string]string `json:"labels,omitempty"`
	// Created is when the node was created, in seconds since 1970; 2^53-1 where the object has no time.
	Created int64 `json:"created,omitempty"`
	// Unschedulable is true while the node is cordoned.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// Conditions are the types of those that are True, such as Ready or MemoryPressure.
	Conditions []string `json:"conditions,omitempty"`
}

// ImagePull is an image that a node does not have yet, and that is pulled ahead of an update.
type ImagePull struct {
	// Image as the template has it.
	Image string `json:"image"`
	// Phase of the pull is Waiting, Pulling or Failed, as the NodeImage has it, and "" before
	// the node has begun, or where that is not known.
	Phase string `json:"phase"`
}

// MaxTime represents a time that is not known, sorted after all that are: the
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
	// Holds stop single pods, those that each names. One that names no namespace stops each pod of
	// the name, and one that names no pod each pod.
	Holds []decision.Hold `json:"holds"`
}

// RankPoint decides the order of pods. Controllers of workloads ask it for the
// candidates of a rollout whose facts changed, many at a time; answers about the
// others are remembered. Without an answer pods have the order of the strategy (A-13,
// A-14), computed in Go from the facts; where a rule of users takes part, each is held.
func RankPoint() decision.Point[RankInput, RankOutput] {
	return decision.Point[RankInput, RankOutput]{
		Name: "rollout/rank", Budget: 2 * time.Second, MaxResult: 1 << 20, MaxBytes: 4 << 20,
		Fallback:       strategyOrder,
		StrictFallback: func(in RankInput) RankOutput { return holdEach(strategyOrder(in), in) },
		Check: func(in RankInput, out RankOutput) error {
			if err := checkKeys("keys", len(in.Pods), out.Keys); err != nil {
				return err
			}
			return checkKeys("lead", len(in.Pods), out.Lead)
		},
		// More pods held is stricter; another order is neither.
		Lean: func(_ RankInput, then, now RankOutput) decision.Strictness {
			return decision.FewerHeld(then.Holds, now.Holds)
		},
	}
}

// strategyOrder is the order that the strategy alone gives: by weight or by order
// then the default order.
func strategyOrder(in RankInput) RankOutput {
	out := RankOutput{Keys: make([][]float64, len(in.Pods)), Lead: make([][]float64, len(in.Pods))}
	if in.Strategy.Ordered || len(in.Pods) > 0 && in.Pods[0].Ordinal != nil {
		return numberedOrder(in)
	}
	before := 0
	switch {
	case in.Workload.Kind == "DaemonSet":
		return nodeOrder(in)
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
			key = append(key, podWeight(in.Strategy, p))
		case 2:
			key = append(key, float64(p.OrderLevel), float64(p.OrderValue))
		}
		out.Keys[i] = append(key, float64(p.Assigned), float64(p.Phase), float64(p.Ready), float64(p.ReadySince), float64(p.Restarts), float64(p.Created))
		out.Lead[i] = leadKey(p)
	}
	return out
}

// nodeOrder leaves pods of kinds that have one on each node as they are given, which is by
// node (ADS-08).
func nodeOrder(in RankInput) RankOutput {
	out := RankOutput{Keys: make([][]float64, len(in.Pods)), Lead: make([][]float64, len(in.Pods))}
	for i, p := range in.Pods {
		out.Keys[i], out.Lead[i] = []float64{0}, leadKey(p)
	}
	return out
}

// numberedOrder is the order of pods with ordinals: by them alone if the strategy is
// ordered, else among pods that the priority of the strategy does not tell apart, the
// highest first (ASTS-11).
func numberedOrder(in RankInput) RankOutput {
	out := RankOutput{Keys: make([][]float64, len(in.Pods)), Lead: make([][]float64, len(in.Pods)), Descending: []int{0}}
	for i, p := range in.Pods {
		ordinal := 0.0
		if p.Ordinal != nil {
			ordinal = float64(*p.Ordinal)
		}
		switch {
		case in.Strategy.Ordered:
			out.Keys[i] = []float64{ordinal}
		case len(in.Strategy.Weights) > 0:
			out.Keys[i], out.Descending = []float64{podWeight(in.Strategy, p), ordinal}, []int{0, 1}
		case len(in.Strategy.OrderKeys) > 0:
			out.Keys[i], out.Descending = []float64{float64(p.OrderLevel), float64(p.OrderValue), ordinal}, []int{1, 2}
		default:
			out.Keys[i] = []float64{ordinal}
		}
		out.Lead[i] = leadKey(p)
	}
	return out
}

// podWeight is the sum of the weights of the terms that select a pod.
func podWeight(s Strategy, p PodFacts) float64 {
	sum := 0
	for _, term := range p.Matches {
		if term >= 0 && term < len(s.Weights) {
			sum += s.Weights[term]
		}
	}
	return float64(sum)
}

// leadKey puts pods first that prepare their update (CS-09).
func leadKey(p PodFacts) []float64 {
	if p.State == "PreparingUpdate" {
		return []float64{-1}
	}
	return []float64{0}
}

// holdEach holds each of some pods, because nothing is known of the rules that could.
func holdEach(out RankOutput, in RankInput) RankOutput {
	hold := decision.UndecidedHold("The policies that may hold this pod did not answer, so it is held until they do.", in)
	for _, p := range in.Pods {
		hold.Pod, hold.Namespace = p.Name, p.Namespace
		out.Holds = append(out.Holds, hold)
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
