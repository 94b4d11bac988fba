// SPDX-License-Identifier: Apache-2.0

// Package launchpriority has the decision point about the order in which the containers of
// a pod start.
package launchpriority

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Ordered is the value of the annotation by which containers start in the order of the
// spec.
const Ordered = "Ordered"

// OrderInput asks which containers of a pod start before others (CLP-01).
type OrderInput struct {
	// Namespace of the pod.
	Namespace string `json:"namespace"`
	// Name of the pod, or what it is to begin with.
	Name string `json:"name"`
	// Labels of the pod; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotation is the value of apps.kruise.io/container-launch-priority, or empty.
	Annotation string `json:"annotation"`
	// Places are what the annotation has for containers, where it is a JSON object: the
	// lowest starts first.
	Places map[string]int64 `json:"places,omitempty"`
	// Fault is what is wrong with the annotation, if it is to be a JSON object.
	Fault string `json:"fault,omitempty"`
	// Containers of the pod, in order; init containers do not count.
	Containers []Container `json:"containers"`
	// NativeSidecars is true when the gate LaunchPriorityNativeSidecars is on: containers of all
	// groups but the last may become init containers that restart.
	NativeSidecars bool `json:"nativeSidecars,omitempty"`
	// RestartPolicy of the pod: Always, OnFailure or Never.
	RestartPolicy string `json:"restartPolicy"`
	// Owner is the controller of the pod; there is none if no controller owns it.
	Owner *Owner `json:"owner,omitempty"`
}

// Owner is the controller of a pod, by what the pod's reference says.
type Owner struct {
	// Group of the API.
	Group string `json:"group"`
	// Kind of the owner.
	Kind string `json:"kind"`
}

// Container is a container of a pod.
type Container struct {
	// Name of the container.
	Name string `json:"name"`
	// Image that it runs.
	Image string `json:"image"`
	// Priority is the env KRUISE_CONTAINER_PRIORITY; there is none if it is not set.
	Priority *int64 `json:"priority,omitempty"`
	// Fault is what is wrong with that env.
	Fault string `json:"fault,omitempty"`
	// Readiness is true if the container has a readiness probe.
	Readiness bool `json:"readiness,omitempty"`
	// Startup is true if the container has a startup probe.
	Startup bool `json:"startup,omitempty"`
	// Ports is true if a port of the container has a name, or is one of the host.
	Ports bool `json:"ports,omitempty"`
	// Bound says why the container cannot become an init container, whatever is answered. It
	// can if it is empty.
	Bound string `json:"bound,omitempty"`
}

// OrderOutput says how containers start.
type OrderOutput struct {
	// Priorities of containers, by name: those with the highest start first. All
	// containers have one, or none if they start together.
	Priorities map[string]int64 `json:"priorities"`
	// Refuse says why the pod is not created at all. The pod is created if it is empty.
	Refuse []decision.Hold `json:"refuse"`
	// Native is true if the containers of all groups but the last become init containers that
	// restart, which the kubelet starts one after the other. Else containers wait for barriers;
	// they do in any case where the gate is off, or where one of those containers is bound.
	Native bool `json:"native,omitempty"`
	// Differs says why containers wait for barriers although the gate is on.
	Differs []decision.Hold `json:"differs,omitempty"`
}

// OrderPoint decides which containers of a pod start before others. The webhook of pods
// asks it before it creates a pod that declares an order. Without an answer the containers
// start in the order that the pod declares.
func OrderPoint() decision.Point[OrderInput, OrderOutput] {
	return decision.Point[OrderInput, OrderOutput]{
		Name: "launchpriority/order", Budget: time.Second, MaxResult: 10_000,
		Fallback: declaredOrder,
		StrictFallback: func(in OrderInput) OrderOutput {
			return OrderOutput{Priorities: map[string]int64{}, Refuse: []decision.Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "The policy that replaces the built-in one did not decide in which order the containers start, so the pod is not created. Try again.",
			}}}
		},
		Check: checkOrder,
		Lean:  orderStrictness,
	}
}

// declaredOrder is the order that the pod declares.
func declaredOrder(in OrderInput) OrderOutput {
	out := OrderOutput{Priorities: map[string]int64{}}
	if len(in.Containers) < 2 {
		return out
	}
	if in.Fault != "" {
		return refuseOrder(in.Fault)
	}
	last := int64(0)
	for _, place := range in.Places {
		last = min(last, -place-1)
	}
	first, differ := int64(0), false
	for i, c := range in.Containers {
		priority := int64(0)
		switch {
		case in.Annotation == Ordered:
			priority = -int64(i)
		case len(in.Places) > 0:
			priority = last
			if place, ok := in.Places[c.Name]; ok {
				priority = -place
			}
		case c.Fault != "":
			return refuseOrder(c.Fault)
		case c.Priority != nil:
			priority = *c.Priority
		}
		if i == 0 {
			first = priority
		}
		differ = differ || priority != first
		out.Priorities[c.Name] = priority
	}
	if !differ {
		return OrderOutput{Priorities: map[string]int64{}}
	}
	return out
}

func refuseOrder(fault string) OrderOutput {
	return OrderOutput{Priorities: map[string]int64{}, Refuse: []decision.Hold{{Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision, Message: fault}}}
}

func checkOrder(in OrderInput, out OrderOutput) error {
	if err := decision.CheckReasons("refuse", out.Refuse); err != nil {
		return err
	}
	if err := decision.CheckReasons("differs", out.Differs); err != nil {
		return err
	}
	if len(out.Priorities) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, c := range in.Containers {
		known[c.Name] = true
		if _, ok := out.Priorities[c.Name]; !ok {
			return fmt.Errorf("priorities lack container %q: all containers have one, or none", c.Name)
		}
	}
	for name := range out.Priorities {
		if !known[name] {
			return fmt.Errorf("priorities have %q, which is no container of the pod", name)
		}
	}
	return nil
}

// lean: a pod that is refused is stricter. An order is neither stricter nor looser than
// another one, but it is stricter than none.
func orderStrictness(_ OrderInput, then, now OrderOutput) decision.Strictness {
	refused, refuses := len(then.Refuse) > 0, len(now.Refuse) > 0
	ordered, orders := len(then.Priorities) > 0, len(now.Priorities) > 0
	switch {
	case refuses && !refused:
		return decision.Stricter
	case refused && !refuses:
		return decision.Looser
	case orders && !ordered:
		return decision.Stricter
	case ordered && !orders:
		return decision.Looser
	}
	return decision.Changed
}

// Words of verdicts.
const (
	Together = "Together"
	InOrder  = "InOrder"
	Refuse   = "Refuse"
)

// ToVerdict implements decision.Judged.
func (o OrderOutput) ToVerdict() decision.Verdict {
	switch {
	case len(o.Refuse) > 0:
		return decision.Verdict{Word: Refuse, Reasons: o.Refuse}
	case len(o.Priorities) > 0:
		return decision.Verdict{Word: InOrder}
	}
	return decision.Verdict{Word: Together}
}

// SetDefaultRules implements decision.Originated.
func (o *OrderOutput) SetDefaultRules(pkg string) {
	decision.SetDefaultRules(o.Refuse, pkg)
	decision.SetDefaultRules(o.Differs, pkg)
}
