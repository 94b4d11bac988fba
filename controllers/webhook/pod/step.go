// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
)

// MutatorPlace is the place of a mutating step among the others.
type MutatorPlace int

// The order of mutating steps (PA-04).
const (
	ReadinessGate MutatorPlace = iota + 1
	WorkloadSpread
	SidecarSet
	LaunchPriority
	BudgetAnnotation
	PersistentPodState
	LivenessProbe
	ServerlessProbe
)

// ValidatorPlace is the place of a validating step among the others.
type ValidatorPlace int

// The order of validating steps (PA-04). The record of a step is not removed if a later step refuses. The record of a deleted
// pod makes room for another pod, so that step is the last.
const (
	Budget ValidatorPlace = iota + 1
	SpreadRecords
)

// Creation is a request to create a pod.
type Creation struct {
	// Pod is changed by the steps. Its own namespace may be empty.
	Pod       *corev1.Pod
	Namespace string
	// DryRun is true if a step must have no side effects.
	DryRun bool
}

// MutatingStep changes pods that are created.
type MutatingStep struct {
	Place MutatorPlace
	// Name says what the step does, for errors: adding the readiness gate.
	Name string
	// Gates are the feature gates of which at least one must be on; empty if the step is always on.
	Gates []featuregate.Feature
	// Match describes the pods that concern the step. The API server may send more pods for other steps: Mutate
	// ignores those.
	Match match.Created
	// Mutate changes the pod and reports whether it did. An error refuses the pod.
	Mutate func(ctx context.Context, c *Creation) (bool, error)
}

// ValidatingStep allows or refuses what makes a pod unavailable.
type ValidatingStep struct {
	Place ValidatorPlace
	// Name says what the step does, for errors.
	Name  string
	Gates []featuregate.Feature
	// Match describes the requests that concern the step. The API server may send more requests for other steps and for
	// rules of users.
	Match []match.Stored
	// Validate answers a request. If it refuses, later steps are not called.
	Validate func(ctx context.Context, r *Request) admission.Response
}

// Steps are the steps of the webhooks of pods.
type Steps struct {
	Mutating   []MutatingStep
	Validating []ValidatingStep
}

// Enabled returns the steps whose feature gates are on, in order.
func (s Steps) Enabled(on func(featuregate.Feature) bool) (Steps, error) {
	out := Steps{
		Mutating:   slices.DeleteFunc(slices.Clone(s.Mutating), func(step MutatingStep) bool { return !anyOn(on, step.Gates) }),
		Validating: slices.DeleteFunc(slices.Clone(s.Validating), func(step ValidatingStep) bool { return !anyOn(on, step.Gates) }),
	}
	if err := sortSteps(out.Mutating, ServerlessProbe, func(step MutatingStep) (MutatorPlace, string) { return step.Place, step.Name }); err != nil {
		return Steps{}, fmt.Errorf("ordering mutating steps: %w", err)
	}
	if err := sortSteps(out.Validating, SpreadRecords, func(step ValidatingStep) (ValidatorPlace, string) { return step.Place, step.Name }); err != nil {
		return Steps{}, fmt.Errorf("ordering validating steps: %w", err)
	}
	return out, nil
}

func anyOn(on func(featuregate.Feature) bool, gates []featuregate.Feature) bool {
	return len(gates) == 0 || slices.ContainsFunc(gates, on)
}

// sortSteps sorts steps by place. Each place is for one step.
func sortSteps[S any, P ~int](steps []S, last P, at func(S) (P, string)) error {
	slices.SortFunc(steps, func(a, b S) int {
		first, _ := at(a)
		second, _ := at(b)
		return cmp.Compare(first, second)
	})
	taken := map[P]string{}
	for _, step := range steps {
		place, name := at(step)
		if place < 1 || place > last {
			return fmt.Errorf("step %q has place %d, want 1 to %d", name, place, last)
		}
		if other, ok := taken[place]; ok {
			return fmt.Errorf("steps %q and %q both have place %d", other, name, place)
		}
		taken[place] = name
	}
	return nil
}

// CreatedMatches describes the pods that concern the mutating steps.
func (s Steps) CreatedMatches() (out []match.Created) {
	for _, step := range s.Mutating {
		out = append(out, step.Match)
	}
	return out
}

// StoredMatches describes the requests that concern the validating steps.
func (s Steps) StoredMatches() (out []match.Stored) {
	for _, step := range s.Validating {
		out = append(out, step.Match...)
	}
	return out
}
