// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

func TestWorkloadSpreadNodeSelectorsHaveOtherNames(t *testing.T) {
	required := &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}
	preferred := []corev1.PreferredSchedulingTerm{{Weight: 3}}
	in := &WorkloadSpread{Spec: WorkloadSpreadSpec{Subsets: []WorkloadSpreadSubset{{Name: "a", RequiredNodeSelectorTerm: required, PreferredNodeSelectorTerms: preferred}}}}
	got := &v1beta1.WorkloadSpread{}
	if err := in.ConvertTo(got); err != nil {
		t.Fatal(err)
	}
	want := &v1beta1.WorkloadSpread{Spec: v1beta1.WorkloadSpreadSpec{Subsets: []v1beta1.WorkloadSpreadSubset{{Name: "a", RequiredNodeSelector: required, PreferredNodeSelector: preferred}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWorkloadSpreadConditions(t *testing.T) {
	now := metav1.Unix(1_790_000_000, 0)
	good := WorkloadSpreadSubsetCondition{Type: "Schedulable", Status: "True", LastTransitionTime: now, Reason: "Sufficient", Message: "Fine."}
	better := metav1.Condition{Type: "Schedulable", Status: "True", LastTransitionTime: now, Reason: "Sufficient", Message: "Fine."}
	but := func(change func(*WorkloadSpreadSubsetCondition)) WorkloadSpreadSubsetCondition {
		changed := good
		change(&changed)
		return changed
	}
	with := func(change func(*metav1.Condition)) metav1.Condition {
		changed := better
		change(&changed)
		return changed
	}
	for _, tc := range []struct {
		name string
		in   []WorkloadSpreadSubsetCondition
		want []metav1.Condition
		kept bool
	}{
		{name: "no condition is no condition"},
		{name: "a good condition is the same", in: []WorkloadSpreadSubsetCondition{good}, want: []metav1.Condition{better}},
		{
			name: "an empty reason is Unknown", in: []WorkloadSpreadSubsetCondition{but(func(c *WorkloadSpreadSubsetCondition) { c.Reason = "" })},
			want: []metav1.Condition{with(func(c *metav1.Condition) { c.Reason = "Unknown" })},
		},
		{
			name: "the reason Unknown is kept, so that it does not become empty",
			in:   []WorkloadSpreadSubsetCondition{but(func(c *WorkloadSpreadSubsetCondition) { c.Reason = "Unknown" })},
			want: []metav1.Condition{with(func(c *metav1.Condition) { c.Reason = "Unknown" })}, kept: true,
		},
		{
			name: "a reason with blanks is Unknown, and kept",
			in:   []WorkloadSpreadSubsetCondition{but(func(c *WorkloadSpreadSubsetCondition) { c.Reason = "no room" })},
			want: []metav1.Condition{with(func(c *metav1.Condition) { c.Reason = "Unknown" })}, kept: true,
		},
		{
			name: "no time is the epoch", in: []WorkloadSpreadSubsetCondition{but(func(c *WorkloadSpreadSubsetCondition) { c.LastTransitionTime = metav1.Time{} })},
			want: []metav1.Condition{with(func(c *metav1.Condition) { c.LastTransitionTime = metav1.Unix(0, 0) })},
		},
		{
			name: "another status is Unknown, and kept",
			in:   []WorkloadSpreadSubsetCondition{but(func(c *WorkloadSpreadSubsetCondition) { c.Status = "perhaps" })},
			want: []metav1.Condition{with(func(c *metav1.Condition) { c.Status = "Unknown" })}, kept: true,
		},
		{
			name: "a long message is cut between characters, and kept",
			in:   []WorkloadSpreadSubsetCondition{but(func(c *WorkloadSpreadSubsetCondition) { c.Message = "x" + strings.Repeat("ä", 1<<14) })},
			want: []metav1.Condition{with(func(c *metav1.Condition) { c.Message = "x" + strings.Repeat("ä", 1<<14-1) })}, kept: true,
		},
		{
			name: "a type with blanks and one that is there already are left out, and kept",
			in:   []WorkloadSpreadSubsetCondition{but(func(c *WorkloadSpreadSubsetCondition) { c.Type = "no type" }), good, but(func(c *WorkloadSpreadSubsetCondition) { c.Status = "False" })},
			want: []metav1.Condition{better}, kept: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := &WorkloadSpread{Status: WorkloadSpreadStatus{
				SubsetStatuses:          []WorkloadSpreadSubsetStatus{{Name: "a"}, {Name: "b", Conditions: tc.in}},
				VersionedSubsetStatuses: map[string][]WorkloadSpreadSubsetStatus{"v1": {{Name: "b", Conditions: tc.in}}},
			}}
			got := &v1beta1.WorkloadSpread{}
			if err := in.ConvertTo(got); err != nil {
				t.Fatal(err)
			}
			for _, conditions := range [][]metav1.Condition{got.Status.SubsetStatuses[1].Conditions, got.Status.VersionedSubsetStatuses["v1"][0].Conditions} {
				if diff := cmp.Diff(tc.want, conditions); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if errs := metav1validation.ValidateConditions(conditions, field.NewPath("conditions")); len(errs) > 0 {
					t.Errorf("v1beta1 refuses them: %v", errs)
				}
			}
			if _, kept := got.Annotations[conversiondata.OlderKey]; kept != tc.kept {
				t.Errorf("got annotations %v, want kept %v", got.Annotations, tc.kept)
			}
			again := &WorkloadSpread{}
			if err := again.ConvertFrom(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(in, again); diff != "" {
				t.Errorf("it came back as another (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAConditionThatWasWrittenSinceWins(t *testing.T) {
	condition := metav1.Condition{Type: "Schedulable", Status: "True", LastTransitionTime: metav1.Unix(1_790_000_000, 0), Reason: "Sufficient", ObservedGeneration: 7}
	hub := &v1beta1.WorkloadSpread{Status: v1beta1.WorkloadSpreadStatus{SubsetStatuses: []v1beta1.WorkloadSpreadSubsetStatus{
		{Name: "a", Conditions: []metav1.Condition{condition}}, {Name: "b", Conditions: []metav1.Condition{condition}},
	}}}
	older, got := &WorkloadSpread{}, &v1beta1.WorkloadSpread{}
	if err := older.ConvertFrom(hub); err != nil {
		t.Fatal(err)
	}
	older.Status.SubsetStatuses[1].Conditions[0].Status = "False"
	if err := older.ConvertTo(got); err != nil {
		t.Fatal(err)
	}
	want := hub.DeepCopy()
	written := &want.Status.SubsetStatuses[1].Conditions[0]
	written.Status, written.ObservedGeneration = "False", 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWorkloadSpreadsSurviveTheirVersions(t *testing.T) {
	filler := apitest.New(9).Funcs(
		func(in *WorkloadSpreadSubsetCondition, c randfill.Continue) {
			c.FillNoCustom(in)
			in.Type, in.Status = WorkloadSpreadSubsetConditionType(apitest.PickValue(c, "Schedulable", "a/B")), corev1.ConditionStatus(apitest.PickValue(c, "True", "False"))
			in.Reason = apitest.PickValue(c, "", "Unknown", "Sufficient")
			if c.Intn(3) == 0 {
				in.LastTransitionTime = metav1.Time{}
			}
		},
		func(in *metav1.Condition, c randfill.Continue) {
			c.FillNoCustom(in)
			in.Type, in.Status = apitest.PickValue(c, "Schedulable", "a/B"), metav1.ConditionStatus(apitest.PickValue(c, "True", "False"))
			in.Reason = apitest.PickValue(c, "", "Unknown", "Sufficient")
			if c.Bool() {
				in.ObservedGeneration = 0
			}
			if c.Intn(3) == 0 {
				in.LastTransitionTime = metav1.Unix(0, 0)
			}
		},
	)
	apitest.RoundTrip(t, filler, &WorkloadSpread{}, &v1beta1.WorkloadSpread{})
}
