// SPDX-License-Identifier: Apache-2.0

// Package injection has the decision points about what pods are given as they are
// created: which SidecarSets, at which revision, and with what resources.
package injection

import (
	"fmt"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Revisions of a SidecarSet that a pod may be given.
const (
	// Latest is the revision of the SidecarSet as it is now.
	Latest = "Latest"
	// Named is the one that injectionStrategy.revision names.
	Named = "Named"
)

// What becomes of a pod that a SidecarSet selects while no policy decides.
const (
	// FailClosed refuses the pod.
	FailClosed = "Fail"
	// FailOpen lets the pod start without the containers of the SidecarSet.
	FailOpen = "Ignore"
)

// SidecarsInput asks what a pod is given as it is created (SS-02).
type SidecarsInput struct {
	// Pod is the pod as it is to be created.
	Pod Pod `json:"pod"`
	// Sets are the SidecarSets that select the pod, by name, and those that the answer
	// before this one wanted.
	Sets []Set `json:"sets"`
}

// Pod is a pod that is to be created.
type Pod struct {
	// Namespace it is to be in.
	Namespace string `json:"namespace"`
	// Name of the pod, or what it is to begin with.
	Name string `json:"name"`
	// Labels of the pod; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pod, but for what kubectl apply notes there.
	Annotations map[string]string `json:"annotations,omitempty"`
	// NamespaceLabels are those of its namespace.
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`
	// NodeSelector says which labels its node has to have.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// ServiceAccount is the name of the account that it runs as.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Owner is the controller of the pod, if it has one.
	Owner *Owner `json:"owner,omitempty"`
	// Containers are its own.
	Containers []Container `json:"containers"`
	// InitContainers are its own.
	InitContainers []Container `json:"initContainers,omitempty"`
}

// Owner is a controller, by what its reference says.
type Owner struct {
	// Group of the API.
	Group string `json:"group"`
	// Kind of the owner.
	Kind string `json:"kind"`
	// Name of the owner.
	Name string `json:"name"`
}

// Container is a container of a pod.
type Container struct {
	// Name of the container.
	Name string `json:"name"`
	// Image that it runs.
	Image string `json:"image"`
}

// Set is a SidecarSet, as it concerns one pod.
type Set struct {
	// Name of the SidecarSet.
	Name string `json:"name"`
	// Labels of the SidecarSet; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the SidecarSet, but for what kubectl apply notes there.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Selected is true when selector and namespaceSelector select the pod (SS-01).
	Selected bool `json:"selected"`
	// Local is true when its namespaceSelector names the pod's namespace.
	Local bool `json:"local"`
	// Paused is true when injectionStrategy is paused.
	Paused bool `json:"paused"`
	// CanaryOf is the SidecarSet that it stands in for, if it is a canary.
	CanaryOf string `json:"canaryOf,omitempty"`
	// UpdatePaused is true when updateStrategy is paused.
	UpdatePaused bool `json:"updatePaused"`
	// UpdateSelected reports whether updateStrategy.selector selects the pod; there is
	// none if there is no such selector.
	UpdateSelected *bool `json:"updateSelected,omitempty"`
	// Share is the partition as a part of 1; there is none if it is no percentage.
	Share *float64 `json:"share,omitempty"`
	// Draw is a random number of this pod, from 0 and below 1.
	Draw float64 `json:"draw"`
	// Revision is what injectionStrategy says of the revision, if it does.
	Revision *Revision `json:"revision,omitempty"`
	// FailurePolicy is Fail or Ignore: what becomes of the pod while no policy decides.
	FailurePolicy string `json:"failurePolicy"`
	// Containers are the names that its containers and init containers have in a pod.
	Containers []string `json:"containers"`
}

// Revision is the revision that injectionStrategy names.
type Revision struct {
	// Policy is Always or Partial.
	Policy string `json:"policy"`
	// Found is false when there is no such revision any more.
	Found bool `json:"found"`
}

// SidecarsOutput says what the pod is given.
type SidecarsOutput struct {
	// Inject are the SidecarSets that the pod is given, in order: containers of the
	// first come first.
	Inject []Injected `json:"inject"`
	// Left are those that it is not given, and why.
	Left []SkippedSet `json:"left"`
	// Wanted are names of SidecarSets that a rule adds and that are not among those of
	// the question. The point is asked once more with these.
	Wanted []string `json:"wanted"`
	// Refuse says why the pod is not created at all. The pod is created if it is empty.
	Refuse []decision.Hold `json:"refuse"`
}

// Injected is a SidecarSet that a pod is given.
type Injected struct {
	// Set is the name of the SidecarSet.
	Set string `json:"set"`
	// Revision is Latest or Named.
	Revision string `json:"revision"`
	// Rule is the id of the rule that chose the revision.
	Rule string `json:"rule,omitempty"`
	// Reason is CamelCase, for machines.
	Reason string `json:"reason"`
	// Message is a sentence, for people.
	Message string `json:"message"`
}

// SkippedSet is a SidecarSet that a pod is not given.
type SkippedSet struct {
	// Set is the name of the SidecarSet.
	Set string `json:"set"`
	// Rule is the id of the rule that leaves it out.
	Rule string `json:"rule,omitempty"`
	// Reason is CamelCase, for machines.
	Reason string `json:"reason"`
	// Message is a sentence, for people.
	Message string `json:"message"`
}

// SidecarsPoint decides which SidecarSets a pod is given, at which revision and in which
// order. The webhook of pods asks it before a pod is created that a SidecarSet selects.
// Without an answer the pod is refused, unless each SidecarSet that selects it says
// that it may start without; it is given what the built-in policies alone give it then.
// Where rules of users may add SidecarSets, none of which has to select the pod, it is
// refused in any case.
func SidecarsPoint() decision.Point[SidecarsInput, SidecarsOutput] {
	return decision.Point[SidecarsInput, SidecarsOutput]{
		Name: "injection/sidecars", Budget: time.Second, MaxResult: 100_000,
		Fallback: fallbackSidecars, StrictFallback: refuseUndecided, StrictWhere: "injection/user_adds", WithBuiltin: withBuiltin,
		Check: checkSidecars,
		Lean:  sidecarsStrictness,
	}
}

// fallbackSidecars refuses the pod, unless SidecarSets select it and each of them says that pods may
// start without it.
func fallbackSidecars(in SidecarsInput) SidecarsOutput {
	var out SidecarsOutput
	for _, set := range in.Sets {
		switch {
		case !set.Selected || set.Paused:
		case set.FailurePolicy == FailOpen:
			out.Left = append(out.Left, SkippedSet{
				Set: set.Name, Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy decided, and the SidecarSet says that pods may start without it.",
			})
		default:
			out.Refuse = append(out.Refuse, decision.Hold{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: fmt.Sprintf("No policy decided what SidecarSet %s gives the pod, so the pod is not created. Try again.", set.Name),
			})
		}
	}
	if len(out.Left) == 0 && len(out.Refuse) == 0 { // rules alone are asked about
		out.Refuse = []decision.Hold{{
			Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
			Message: "No policy decided which SidecarSets the pod is given, so the pod is not created. Try again.",
		}}
	}
	return out
}

// refuseUndecided refuses the pod: a rule that did not answer may have meant to add a SidecarSet that
// the question does not have, and which does not say that pods may start without it.
func refuseUndecided(in SidecarsInput) SidecarsOutput {
	out := SidecarsOutput{Refuse: fallbackSidecars(in).Refuse}
	if len(out.Refuse) == 0 {
		out.Refuse = []decision.Hold{{
			Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
			Message: "No policy decided which SidecarSets the pod is given, and rules may add some that it must not start without, so the pod is not created. Try again.",
		}}
	}
	return out
}

// withBuiltin gives a pod that may start without a decision what the built-in policies give it.
func withBuiltin(_ SidecarsInput, fallback, builtin SidecarsOutput) SidecarsOutput {
	if len(fallback.Refuse) > 0 {
		return fallback
	}
	return builtin
}

func checkSidecars(in SidecarsInput, out SidecarsOutput) error {
	known, seen := map[string]*Set{}, map[string]bool{}
	for i := range in.Sets {
		known[in.Sets[i].Name] = &in.Sets[i]
	}
	for _, one := range out.Inject {
		set := known[one.Set]
		switch {
		case set == nil:
			return fmt.Errorf("inject has %q, which is no SidecarSet of the question", one.Set)
		case seen[one.Set]:
			return fmt.Errorf("inject has %q twice", one.Set)
		case one.Revision != Latest && one.Revision != Named:
			return fmt.Errorf("the revision of %q is %q, want %s or %s", one.Set, one.Revision, Latest, Named)
		case one.Revision == Named && (set.Revision == nil || !set.Revision.Found):
			return fmt.Errorf("the revision of %q is %s, and there is none", one.Set, Named)
		}
		seen[one.Set] = true
	}
	return decision.CheckReasons("refuse", out.Refuse)
}

// lean: a pod that is refused is stricter, and one that lacks a SidecarSet is looser.
func sidecarsStrictness(_ SidecarsInput, then, now SidecarsOutput) decision.Strictness {
	refused, refuses := len(then.Refuse) > 0, len(now.Refuse) > 0
	switch {
	case refuses && !refused:
		return decision.Stricter
	case refused && !refuses, lacksSidecarSet(then, now):
		return decision.Looser
	case lacksSidecarSet(now, then):
		return decision.Stricter
	}
	return decision.Changed
}

// lacksSidecarSet reports whether an answer leaves out what another one has.
func lacksSidecarSet(other, answer SidecarsOutput) bool {
	return slices.ContainsFunc(other.Inject, func(one Injected) bool {
		return !slices.ContainsFunc(answer.Inject, func(i Injected) bool { return i.Set == one.Set })
	})
}
