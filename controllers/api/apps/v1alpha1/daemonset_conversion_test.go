// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

const progressive = v1beta1.ProgressiveCreatePodKey

func amounts() (none, one, some *intstr.IntOrString) {
	return ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromString("30%"))
}

func rolling(kind v1beta1.RollingUpdateType, unavailable, surge *intstr.IntOrString) v1beta1.DaemonSetUpdateStrategy {
	return v1beta1.DaemonSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateDaemonSet{Type: kind, MaxUnavailable: unavailable, MaxSurge: surge}}
}

func oldDaemonSet(meta metav1.ObjectMeta, strategy v1beta1.DaemonSetUpdateStrategy) DaemonSet {
	return DaemonSet{ObjectMeta: meta, Spec: DaemonSetSpec{UpdateStrategy: strategy}}
}

func newDaemonSet(meta metav1.ObjectMeta, strategy v1beta1.DaemonSetUpdateStrategy) v1beta1.DaemonSet {
	return v1beta1.DaemonSet{ObjectMeta: meta, Spec: v1beta1.DaemonSetSpec{UpdateStrategy: strategy}}
}

func TestDaemonSetToHub(t *testing.T) {
	none, one, some := amounts()
	bare, empty := metav1.ObjectMeta{}, v1beta1.DaemonSetUpdateStrategy{}
	partitioned := v1beta1.DaemonSet{Spec: v1beta1.DaemonSetSpec{ScaleStrategy: v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}}}
	for _, tc := range []struct {
		name string
		in   DaemonSet
		want v1beta1.DaemonSet
	}{
		{
			name: "Surging is a surge of one",
			in:   oldDaemonSet(bare, rolling("Surging", nil, nil)),
			want: newDaemonSet(annotated(conversiondata.OlderKey, `{"rollingUpdateType":"Surging"}`), rolling("Standard", none, one)),
		},
		{
			name: "Surging surges as far as it says",
			in:   oldDaemonSet(bare, rolling("Surging", nil, some)),
			want: newDaemonSet(annotated(conversiondata.OlderKey, `{"rollingUpdateType":"Surging","maxSurge":"30%"}`), rolling("Standard", none, some)),
		},
		{
			name: "Surging surges even if it says 0, and makes no node unavailable even if it says so",
			in:   oldDaemonSet(bare, rolling("Surging", some, none)),
			want: newDaemonSet(annotated(conversiondata.OlderKey, `{"rollingUpdateType":"Surging","maxUnavailable":"30%","maxSurge":0}`), rolling("Standard", none, one)),
		},
		{
			name: "another type is the same here, and what was kept of Surging is gone",
			in:   oldDaemonSet(annotated(conversiondata.OlderKey, `{"rollingUpdateType":"Surging"}`), rolling("InPlaceIfPossible", some, nil)),
			want: newDaemonSet(bare, rolling("InPlaceIfPossible", some, nil)),
		},
		{name: "the annotation is a field", in: oldDaemonSet(annotated(progressive, "true"), empty), want: partitioned},
		{
			name: "the annotation with another value is no field, and stays",
			in:   oldDaemonSet(annotated(progressive, "True"), empty),
			want: newDaemonSet(annotated(progressive, "True"), empty),
		},
		{
			name: "the hash is the update revision",
			in:   DaemonSet{Status: DaemonSetStatus{DaemonSetHash: "abc"}},
			want: v1beta1.DaemonSet{Status: v1beta1.DaemonSetStatus{UpdateRevision: "abc"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			apitest.RequireEqual(t, "converted", &tc.want, apitest.Hub[v1beta1.DaemonSet](t, &tc.in))
		})
	}
}

func TestDaemonSetFromHub(t *testing.T) {
	none, one, some := amounts()
	bare := metav1.ObjectMeta{}
	surging := annotated(conversiondata.OlderKey, `{"rollingUpdateType":"Surging"}`)
	later := rolling("Standard", none, one)
	later.RollingUpdate.Partition = some
	want := rolling("Surging", nil, nil)
	want.RollingUpdate.Partition = some
	for _, tc := range []struct {
		name string
		in   v1beta1.DaemonSet
		want DaemonSet
	}{
		{
			name: "a surge without the type Surging is Standard",
			in:   newDaemonSet(bare, rolling("Standard", none, one)),
			want: oldDaemonSet(bare, rolling("Standard", none, one)),
		},
		{
			name: "a surge that was called Surging is so again, and follows what else was changed",
			in:   newDaemonSet(surging, later),
			want: oldDaemonSet(bare, want),
		},
		{
			name: "a surge that was changed since is Standard",
			in:   newDaemonSet(surging, rolling("Standard", none, some)),
			want: oldDaemonSet(bare, rolling("Standard", none, some)),
		},
		{
			name: "a type that was changed since is what it is",
			in:   newDaemonSet(surging, rolling("", none, one)),
			want: oldDaemonSet(bare, rolling("", none, one)),
		},
		{
			name: "a rolling update that was removed since is gone",
			in:   newDaemonSet(surging, v1beta1.DaemonSetUpdateStrategy{}),
			want: oldDaemonSet(bare, v1beta1.DaemonSetUpdateStrategy{}),
		},
		{
			name: "Surging in v1beta1 is an unknown word that comes back",
			in:   newDaemonSet(bare, rolling("Surging", some, nil)),
			want: oldDaemonSet(annotated(conversiondata.NewerKey, `{"rollingUpdateType":"Surging"}`), rolling("Surging", some, nil)),
		},
		{
			name: "an annotation of the hub is not taken for its field",
			in:   newDaemonSet(annotated(progressive, "true"), v1beta1.DaemonSetUpdateStrategy{}),
			want: oldDaemonSet(annotated(progressive, "true", conversiondata.NewerKey,
				`{"annotations":{"daemonset.kruise.io/progressive-create-pod":{"is":"only","text":"true"}}}`), v1beta1.DaemonSetUpdateStrategy{}),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			apitest.RequireEqual(t, "converted", &tc.want, apitest.ConvertFromHub[DaemonSet](t, &tc.in))
		})
	}
}

func TestDaemonSetsSurviveTheOtherVersion(t *testing.T) {
	apitest.RoundTrip(t, newFiller(20261121), &DaemonSet{}, &v1beta1.DaemonSet{})
}
