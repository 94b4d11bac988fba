// SPDX-License-Identifier: Apache-2.0

// Package node has the decision points of what is done on nodes: which containers of a pod
// are restarted now, and which nodes pull an image now.
package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Phases of a container that is to be restarted.
const (
	Pending    = "Pending"
	Recreating = "Recreating"
	Succeeded  = "Succeeded"
	Failed     = "Failed"
)

// RestartsInput asks which containers of a ContainerRecreateRequest are stopped now
// (CRR-09).
type RestartsInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Request is what was asked for.
	Request Request `json:"request"`
	// Pod is the one with the containers.
	Pod Pod `json:"pod"`
	// Containers are those to be restarted, in the order of the request.
	Containers []Container `json:"containers"`
	// Budgets are the PodUnavailableBudgets of the pod, by name.
	Budgets []Budget `json:"budgets"`
}

// Request is a ContainerRecreateRequest.
type Request struct {
	// Name of the request.
	Name string `json:"name"`
	// Namespace of the request and the pod.
	Namespace string `json:"namespace"`
	// Created is in nanoseconds since 1970.
	Created int64 `json:"created"`
	// Labels of the request; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the request; there are none if it has none.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Ordered is true where a container waits for the one before it.
	Ordered bool `json:"ordered"`
	// Force is true where a container is stopped though it has restarted by itself.
	Force bool `json:"force"`
	// FailFast is true where the others are left alone after one that failed.
	FailFast bool `json:"failFast"`
}

// Pod is a pod with containers to be restarted.
type Pod struct {
	// Name of the pod.
	Name string `json:"name"`
	// Node that it runs on.
	Node string `json:"node"`
	// Labels of the pod; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pod; there are none if it has none.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Owner is the controller of the pod, if it has one.
	Owner *Owner `json:"owner,omitempty"`
	// Ready is true when the pod has the condition Ready.
	Ready bool `json:"ready"`
}

// Owner is a controller, by what its reference says.
type Owner struct {
	// Kind of the owner.
	Kind string `json:"kind"`
	// Name of the owner.
	Name string `json:"name"`
}

// Container is a container to be restarted.
type Container struct {
	// Name of the container.
	Name string `json:"name"`
	// Phase is Pending, Recreating, Succeeded or Failed, by what the node says.
	Phase string `json:"phase"`
	// Found is true unless the node does not have the container.
	Found bool `json:"found"`
	// Permitted is true once the node may stop it.
	Permitted bool `json:"permitted"`
	// Restarts is how many runs went before.
	Restarts int `json:"restarts"`
}

// Budget is a PodUnavailableBudget, by its status.
type Budget struct {
	// Name of the budget.
	Name string `json:"name"`
	// Allowed is how many more pods may become unavailable.
	Allowed int `json:"allowed"`
	// Desired is how many pods should be available.
	Desired int `json:"desired"`
	// Current is how many are.
	Current int `json:"current"`
}

// RestartsOutput says which containers the node may stop. The clamp in Go permits only
// those of the request that wait, one after the other where that is asked for, and none
// that is held or denied, whatever it says.
type RestartsOutput struct {
	// Restart names containers, in the order in which they are stopped.
	Restart []string `json:"restart"`
	// Charge is true where a restart takes one of the pods that the budget of the pod allows
	// to be unavailable, and waits while the budget allows none.
	Charge bool `json:"charge,omitempty"`
	// Holds stop new restarts for now. None means go.
	Holds []decision.Hold `json:"holds"`
	// Denials are of containers that are not restarted for this request. They have failed.
	Denials []Denial `json:"denials"`
}

// RestartsPoint decides which containers are stopped now. The manager asks it when a node
// says how far the containers of a request have come, and again every few seconds while a
// rule holds. Without an answer nothing is stopped.
func RestartsPoint() decision.Point[RestartsInput, RestartsOutput] {
	return decision.Point[RestartsInput, RestartsOutput]{
		Name: "node/restarts", Budget: 100 * time.Millisecond, MaxResult: 20_000,
		Fallback: func(RestartsInput) RestartsOutput {
			return RestartsOutput{Holds: []decision.Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy could decide this restart, so no container is stopped.",
			}}}
		},
		Check: checkRestarts,
		Lean:  leanRestarts,
	}
}

func checkRestarts(in RestartsInput, out RestartsOutput) error {
	for _, name := range out.Restart {
		if !slices.ContainsFunc(in.Containers, func(c Container) bool { return c.Name == name }) {
			return fmt.Errorf("restart names container %q, which the request does not", name)
		}
	}
	return checkTold(nil, out.Denials)
}

// PermittedContainers is which containers of an answer may be stopped: the clamp.
func (o RestartsOutput) PermittedContainers(in RestartsInput) []string {
	if len(o.Holds) > 0 {
		return nil
	}
	var out []string
	for _, c := range in.Containers {
		waits := c.Phase == Pending
		if waits && c.Found && !c.Permitted && slices.Contains(o.Restart, c.Name) && o.findDenial(c.Name) == nil {
			out = append(out, c.Name)
		}
		if in.Request.Ordered && (waits || c.Phase == Recreating) {
			break // what follows waits for this one
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return slices.Index(o.Restart, a) - slices.Index(o.Restart, b) })
	return out
}

// DeniedContainers is why containers that are not stopped yet never will be, by name.
func (o RestartsOutput) DeniedContainers(in RestartsInput) map[string]Denial {
	out := map[string]Denial{}
	for _, c := range in.Containers {
		if d := o.findDenial(c.Name); d != nil && c.Phase == Pending && !c.Permitted {
			out[c.Name] = *d
		}
	}
	return out
}

func (o RestartsOutput) findDenial(container string) *Denial {
	for i := range o.Denials {
		if c := o.Denials[i].Container; c == "" || c == container {
			return &o.Denials[i]
		}
	}
	return nil
}

// leanRestarts: fewer containers stopped is stricter, and so are a denial that another
// answer only held, and a restart that is charged to the budget.
func leanRestarts(in RestartsInput, then, now RestartsOutput) decision.Strictness {
	return decision.CombineStrictness(
		decision.CombineStrictness(decision.FewerIsStricter(len(then.PermittedContainers(in)), len(now.PermittedContainers(in))), decision.StrictnessOf(now.Charge && !then.Charge, then.Charge && !now.Charge)),
		decision.FewerIsStricter(-len(then.DeniedContainers(in)), -len(now.DeniedContainers(in))))
}
