// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
	"github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/test/proptest"
)

func TestBudgetFromTheHub(t *testing.T) {
	for _, tc := range []struct {
		name   string
		spec   v1beta1.PodUnavailableBudgetSpec
		before map[string]string
		want   map[string]string
	}{
		{name: "a budget of the old fields needs no annotation"},
		{
			name: "operations and the total are annotations",
			spec: v1beta1.PodUnavailableBudgetSpec{ProtectOperations: []v1beta1.PubOperation{"DELETE", "EVICT"}, ProtectTotalReplicas: ptr.To[int32](7)},
			want: map[string]string{BudgetProtectOperationsKey: "DELETE,EVICT", BudgetProtectTotalReplicasKey: "7"},
		},
		{
			name: "the selector of ignored pods is kept",
			spec: v1beta1.PodUnavailableBudgetSpec{IgnoredPodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
			want: map[string]string{conversiondata.NewerKey: `{"ignoredPodSelector":{"matchLabels":{"a":"b"}}}`},
		},
		{
			name: "an empty selector is not none",
			spec: v1beta1.PodUnavailableBudgetSpec{IgnoredPodSelector: &metav1.LabelSelector{}},
			want: map[string]string{conversiondata.NewerKey: `{"ignoredPodSelector":{}}`},
		},
		{
			name: "operations that the annotation cannot say are kept",
			spec: v1beta1.PodUnavailableBudgetSpec{ProtectOperations: []v1beta1.PubOperation{"DELETE,UPDATE"}},
			want: map[string]string{conversiondata.NewerKey: `{"protectOperations":["DELETE,UPDATE"]}`},
		},
		{
			name:   "an annotation without a field is shown",
			before: map[string]string{BudgetProtectTotalReplicasKey: "7"},
			want:   map[string]string{BudgetProtectTotalReplicasKey: "7", conversiondata.NewerKey: `{"annotations":{"pub.kruise.io/protect-total-replicas":{"is":"only","text":"7"}}}`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hub := &v1beta1.PodUnavailableBudget{Spec: tc.spec}
			hub.Annotations = tc.before
			old := apitest.ConvertFromHub[PodUnavailableBudget](t, hub)
			if diff := cmp.Diff(tc.want, old.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			apitest.RequireEqual(t, "the hub came back changed", hub, apitest.Hub[v1beta1.PodUnavailableBudget](t, old))
		})
	}
}

func TestBudgetToTheHub(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before map[string]string
		want   v1beta1.PodUnavailableBudgetSpec
		left   map[string]string
	}{
		{
			name:   "annotations are fields, and go",
			before: map[string]string{BudgetProtectOperationsKey: "UPDATE,RESIZE", BudgetProtectTotalReplicasKey: "7"},
			want:   v1beta1.PodUnavailableBudgetSpec{ProtectOperations: []v1beta1.PubOperation{"UPDATE", "RESIZE"}, ProtectTotalReplicas: ptr.To[int32](7)},
		},
		{
			name:   "blanks and signs come back to who wrote them",
			before: map[string]string{BudgetProtectOperationsKey: "UPDATE, DELETE", BudgetProtectTotalReplicasKey: "+7"},
			want:   v1beta1.PodUnavailableBudgetSpec{ProtectOperations: []v1beta1.PubOperation{"UPDATE", "DELETE"}, ProtectTotalReplicas: ptr.To[int32](7)},
			left:   map[string]string{conversiondata.OlderKey: `{"annotations":{"kruise.io/pub-protect-operations":"UPDATE, DELETE","pub.kruise.io/protect-total-replicas":"+7"}}`},
		},
		{
			name:   "annotations that cannot be read stay",
			before: map[string]string{BudgetProtectOperationsKey: "DELETE,LAUGH", BudgetProtectTotalReplicasKey: "10%"},
			left:   map[string]string{BudgetProtectOperationsKey: "DELETE,LAUGH", BudgetProtectTotalReplicasKey: "10%"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old := &PodUnavailableBudget{}
			old.Annotations = tc.before
			hub := apitest.Hub[v1beta1.PodUnavailableBudget](t, old)
			if diff := cmp.Diff(tc.want, hub.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.left, hub.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			apitest.RequireEqual(t, "the old version came back changed", old, apitest.ConvertFromHub[PodUnavailableBudget](t, hub))
		})
	}
}

func TestBothVersionsAreRegistered(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{GroupVersion.Version, v1beta1.GroupVersion.Version} {
		for _, kind := range []string{"PodUnavailableBudget", "PodUnavailableBudgetList"} {
			if gvk := GroupVersion.WithKind(kind).GroupKind().WithVersion(version); !scheme.Recognizes(gvk) {
				t.Errorf("the scheme does not know %s", gvk)
			}
		}
	}
}

func budgetTexts() map[string][]string {
	return map[string][]string{
		BudgetProtectOperationsKey:    {"DELETE", "DELETE,UPDATE", " EVICT , RESIZE", "", ",", "FOO"},
		BudgetProtectTotalReplicasKey: {"7", "+7", "0", "-3", "1e3", "99999999999", ""},
	}
}

func budgetFiller(seed int64) *randfill.Filler {
	return apitest.NewWithAnnotations(seed, budgetTexts(),
		func(operation *v1beta1.PubOperation, c randfill.Continue) {
			*operation = []v1beta1.PubOperation{"DELETE", "UPDATE", "EVICT", "RESIZE", "", "FOO", "DELETE,UPDATE"}[c.Intn(4+3*c.Intn(2))]
		},
		func(total *int32, c randfill.Continue) { *total = []int32{7, 0, c.Int31()}[c.Intn(3)] },
	)
}

// What a client of the old version writes on an object that came from the hub, it reads again.
func TestWritersOfOldBudgetsAreHeard(t *testing.T) {
	filler := budgetFiller(8)
	for range proptest.Often(300) {
		hub, written := &v1beta1.PodUnavailableBudget{}, &PodUnavailableBudget{}
		filler.Fill(hub)
		filler.Fill(written)
		old := apitest.ConvertFromHub[PodUnavailableBudget](t, hub)
		for key := range budgetTexts() {
			conversiondata.RemoveMetadata(&old.Annotations, key)
			if text, ok := written.Annotations[key]; ok {
				conversiondata.SetMetadata(&old.Annotations, key, text)
			}
		}
		again := apitest.ConvertFromHub[PodUnavailableBudget](t, apitest.Hub[v1beta1.PodUnavailableBudget](t, old))
		conversiondata.RemoveMetadata(&old.Annotations, conversiondata.NewerKey)
		conversiondata.RemoveMetadata(&again.Annotations, conversiondata.NewerKey)
		apitest.RequireEqual(t, "the client reads something else", old, again)
	}
}

func TestPodUnavailableBudgetsSurviveTheOtherVersion(t *testing.T) {
	apitest.RoundTrip(t, budgetFiller(1), &PodUnavailableBudget{}, &v1beta1.PodUnavailableBudget{})
}
