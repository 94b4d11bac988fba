// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
)

// tiny steps write down that they ran.
type tiny struct{ ran []string }

func (s *tiny) mutating(name string, place pod.MutatorPlace, gates ...featuregate.Feature) pod.MutatingStep {
	return pod.MutatingStep{
		Place: place, Name: name, Gates: gates, Match: match.Created{Name: name},
		Mutate: func(_ context.Context, c *pod.Creation) (bool, error) {
			if c.DryRun {
				name += " (dry run)"
			}
			s.ran = append(s.ran, name)
			return false, nil
		},
	}
}

func (s *tiny) validating(name string, place pod.ValidatorPlace, allow bool, gates ...featuregate.Feature) pod.ValidatingStep {
	return pod.ValidatingStep{
		Place: place, Name: name, Gates: gates, Match: []match.Stored{{Conditions: []string{name}}},
		Validate: func(context.Context, *pod.Request) admission.Response {
			s.ran = append(s.ran, name)
			if allow {
				return admission.Allowed(name).WithWarnings(name + " warns")
			}
			return admission.Denied(name).WithWarnings(name + " warns")
		},
	}
}

func on(gates ...featuregate.Feature) func(featuregate.Feature) bool {
	return func(f featuregate.Feature) bool {
		for _, g := range gates {
			if f == g {
				return true
			}
		}
		return false
	}
}

// PA-04: the order is that of the places, whatever the order of the list, and a step runs if one of its gates is on.
func TestMutatingStepsRunInOrderIfTheirGatesAreOn(t *testing.T) {
	const either, or, other = features.PodUnavailableBudgetDeleteGate, features.PodUnavailableBudgetUpdateGate, features.WorkloadSpread
	for name, tc := range map[string]struct {
		gates  []featuregate.Feature
		dryRun bool
		want   string
	}{
		"all gates are off":      {want: "readiness priority"},
		"one of two gates is on": {gates: []featuregate.Feature{or}, want: "readiness priority budget"},
		"all gates are on":       {gates: []featuregate.Feature{either, or, other}, want: "readiness spread priority budget"},
		"a step learns of a dry run, in which it must not store anything": {dryRun: true, want: "readiness (dry run) priority (dry run)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &tiny{}
			steps, err := pod.Steps{Mutating: []pod.MutatingStep{
				s.mutating("budget", pod.BudgetAnnotation, either, or), s.mutating("priority", pod.LaunchPriority),
				s.mutating("spread", pod.WorkloadSpread, other), s.mutating("readiness", pod.ReadinessGate),
			}}.Enabled(on(tc.gates...))
			if err != nil {
				t.Fatal(err)
			}
			mutator, _ := pod.New(nil, steps, 0)
			req := ask(admissionv1.Create, "", "", made)
			req.DryRun = ptr.To(tc.dryRun)
			if got := mutator.Handle(t.Context(), req); !got.Allowed || len(got.Patches) > 0 {
				t.Errorf("%t, %v", got.Allowed, got.Patches)
			}
			if got := strings.Join(s.ran, " "); got != tc.want {
				t.Errorf("ran %s, want %s", got, tc.want)
			}
			var matches []string
			for _, m := range steps.CreatedMatches() {
				matches = append(matches, m.Name)
			}
			if got := strings.Join(matches, " "); got != strings.ReplaceAll(tc.want, " (dry run)", "") {
				t.Errorf("%s concern the API server", got)
			}
		})
	}
}

func TestValidatingStepsRunInOrderUntilOneRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		records, budget bool
		gates           []featuregate.Feature
		want            string
	}{
		"both allow":                      {records: true, budget: true, gates: []featuregate.Feature{features.WorkloadSpread}, want: "budget records"},
		"the budget refuses":              {records: true, gates: []featuregate.Feature{features.WorkloadSpread}, want: "budget"},
		"the gate of one is off":          {budget: true, want: "budget"},
		"the second refuses":              {budget: true, gates: []featuregate.Feature{features.WorkloadSpread}, want: "budget records"},
		"the only one that is on refuses": {records: true, want: "budget"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &tiny{}
			steps, err := pod.Steps{Validating: []pod.ValidatingStep{
				s.validating("budget", pod.Budget, tc.budget), s.validating("records", pod.SpreadRecords, tc.records, features.WorkloadSpread),
			}}.Enabled(on(tc.gates...))
			if err != nil {
				t.Fatal(err)
			}
			_, validator := pod.New(newWorld(t, 1, true, true, interceptor.Funcs{}), steps, 0)
			last := tc.want[strings.LastIndex(tc.want, " ")+1:]
			allow := map[string]bool{"records": tc.records, "budget": tc.budget}[last]
			got := validator.Handle(t.Context(), ask(admissionv1.Delete, "", made, ""))
			if got.Allowed != allow || got.Result.Message != last || !allow && got.Result.Code != http.StatusForbidden {
				t.Errorf("%t, %v", got.Allowed, got.Result)
			}
			if ran := strings.Join(s.ran, " "); ran != tc.want {
				t.Errorf("ran %s, want %s", ran, tc.want)
			}
			if warned := strings.ReplaceAll(strings.Join(got.Warnings, " "), " warns", ""); warned != tc.want {
				t.Errorf("a user reads warnings of %q, want those of %q", warned, tc.want)
			}
			if n := len(steps.StoredMatches()); n != 1+len(tc.gates) {
				t.Errorf("%d matches", n)
			}
		})
	}
}

func TestStepsMustHaveAPlaceOfTheirOwn(t *testing.T) {
	s := &tiny{}
	for want, steps := range map[string]pod.Steps{
		`ordering mutating steps: steps "a" and "b" both have place 3`:   {Mutating: []pod.MutatingStep{s.mutating("a", pod.SidecarSet), s.mutating("b", pod.SidecarSet)}},
		`ordering mutating steps: step "a" has place 0, want 1 to 8`:     {Mutating: []pod.MutatingStep{s.mutating("a", 0)}},
		`ordering validating steps: steps "a" and "b" both have place 1`: {Validating: []pod.ValidatingStep{s.validating("a", pod.Budget, true), s.validating("b", pod.Budget, true)}},
		`ordering validating steps: step "a" has place 3, want 1 to 2`:   {Validating: []pod.ValidatingStep{s.validating("a", 3, true)}},
	} {
		if _, err := steps.Enabled(on()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The list that Enabled is given stays as it is: a manager and a simulation may share it.
func TestEnabledLeavesItsListAlone(t *testing.T) {
	s := &tiny{}
	all := pod.Steps{Mutating: []pod.MutatingStep{s.mutating("b", pod.SidecarSet, features.WorkloadSpread), s.mutating("a", pod.ReadinessGate)}}
	if _, err := all.Enabled(on()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, step := range all.Mutating {
		names = append(names, step.Name)
	}
	if diff := cmp.Diff([]string{"b", "a"}, names); diff != "" {
		t.Error(diff)
	}
}
