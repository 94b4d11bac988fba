// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

const (
	exclude     = v1beta1.CloneSetScalingExcludePreparingDeleteKey
	parallelism = v1beta1.ImagePreDownloadParallelismKey
	timeout     = v1beta1.ImagePreDownloadTimeoutSecondsKey
	minReady    = v1beta1.ImagePreDownloadMinUpdatedReadyPodsKey
)

func TestConvertToHub(t *testing.T) {
	rolling := func(policy v1beta1.PodUpdatePolicyType) v1beta1.CloneSetSpec {
		return v1beta1.CloneSetSpec{
			ScaleStrategy: v1beta1.CloneSetScaleStrategy{EnablePVCReuse: true},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type:          v1beta1.RollingUpdateCloneSetUpdateStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: policy},
			},
		}
	}
	onDelete := v1beta1.CloneSetSpec{
		ScaleStrategy:  v1beta1.CloneSetScaleStrategy{EnablePVCReuse: true},
		UpdateStrategy: v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDeleteCloneSetUpdateStrategyType},
	}
	recreate := v1beta1.RecreatePodUpdatePolicyType
	with := func(spec v1beta1.CloneSetSpec, change func(*v1beta1.CloneSetSpec)) v1beta1.CloneSetSpec {
		change(&spec)
		return spec
	}
	for _, tc := range []struct {
		name string
		in   CloneSet
		want v1beta1.CloneSetSpec
		meta metav1.ObjectMeta
	}{
		{name: "no type is a rolling recreation", want: rolling(recreate)},
		{name: "an unknown type is a rolling recreation", in: of(CloneSetUpdateStrategy{Type: "Foo"}), want: rolling(recreate)},
		{name: "ReCreate is a pod update policy", in: of(CloneSetUpdateStrategy{Type: RecreateCloneSetUpdateStrategyType}), want: rolling(recreate)},
		{name: "InPlaceIfPossible is a pod update policy", in: of(CloneSetUpdateStrategy{Type: InPlaceIfPossibleCloneSetUpdateStrategyType}), want: rolling(v1beta1.InPlaceIfPossiblePodUpdatePolicyType)},
		{name: "InPlaceOnly is a pod update policy", in: of(CloneSetUpdateStrategy{Type: InPlaceOnlyCloneSetUpdateStrategyType}), want: rolling(v1beta1.InPlaceOnlyPodUpdatePolicyType)},
		{name: "OnDelete drops the rolling update", in: of(CloneSetUpdateStrategy{Type: OnDeleteCloneSetUpdateStrategyType, Paused: true}), want: onDelete},
		{
			name: "OnDelete keeps the rolling update that the hub had",
			in: CloneSet{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{PodUpdatePolicyKey: "InPlaceOnly"}},
				Spec:       CloneSetSpec{UpdateStrategy: CloneSetUpdateStrategy{Type: OnDeleteCloneSetUpdateStrategyType, Paused: true}},
			},
			want: with(onDelete, func(s *v1beta1.CloneSetSpec) {
				s.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: v1beta1.InPlaceOnlyPodUpdatePolicyType, Paused: true}
			}),
		},
		{
			name: "disabling the reuse of claims does not enable it",
			in:   CloneSet{Spec: CloneSetSpec{ScaleStrategy: CloneSetScaleStrategy{DisablePVCReuse: true}}},
			want: with(rolling(recreate), func(s *v1beta1.CloneSetSpec) { s.ScaleStrategy.EnablePVCReuse = false }),
		},
		{
			name: "the label is a field, and stays",
			in:   CloneSet{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{exclude: "true"}}},
			want: with(rolling(recreate), func(s *v1beta1.CloneSetSpec) { s.ScaleStrategy.ExcludePreparingDelete = true }),
			meta: metav1.ObjectMeta{Labels: map[string]string{exclude: "true"}},
		},
		{
			name: "the label with another value is no field",
			in:   CloneSet{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{exclude: "1"}}},
			want: rolling(recreate),
			meta: metav1.ObjectMeta{Labels: map[string]string{exclude: "1"}},
		},
		{
			name: "annotations are fields that win over fields, and what says nothing stays an annotation",
			in: CloneSet{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{parallelism: "10%", timeout: "0600", minReady: "many"}},
				Spec: CloneSetSpec{UpdateStrategy: CloneSetUpdateStrategy{InPlaceUpdateStrategy: &v1beta1.InPlaceUpdateStrategy{
					GracePeriodSeconds: 3, ImagePreDownloadTimeoutSeconds: ptr.To[int32](7), ImagePreDownloadMinUpdatedReadyPods: ptr.To[int32](7),
				}}},
			},
			want: with(rolling(recreate), func(s *v1beta1.CloneSetSpec) {
				s.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{
					GracePeriodSeconds: 3, ImagePreDownloadParallelism: ptr.To(intstr.FromString("10%")), ImagePreDownloadTimeoutSeconds: ptr.To[int32](600),
				}
			}),
			meta: metav1.ObjectMeta{Annotations: map[string]string{parallelism: "10%", timeout: "0600", minReady: "many"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := converted(t, &tc.in)
			if diff := cmp.Diff(tc.want, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			conversiondata.RemoveMetadata(&got.Annotations, conversiondata.OlderKey) // what is kept beside is tried below
			if diff := cmp.Diff(tc.meta, got.ObjectMeta); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConvertFromHub(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   v1beta1.CloneSet
		want CloneSetUpdateStrategy
		meta metav1.ObjectMeta
	}{
		{name: "nothing said is ReCreate", want: CloneSetUpdateStrategy{Type: "ReCreate"}},
		{
			name: "OnDelete is a type that only v1beta1 can give",
			in:   rollingHub(v1beta1.OnDeleteCloneSetUpdateStrategyType, nil, nil),
			want: CloneSetUpdateStrategy{Type: "OnDelete"},
		},
		{
			name: "OnDelete with a rolling update remembers the policy in an annotation",
			in: rollingHub(v1beta1.OnDeleteCloneSetUpdateStrategyType, &v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: v1beta1.InPlaceOnlyPodUpdatePolicyType, Partition: ptr.To(intstr.FromInt32(3))}, nil),
			want: CloneSetUpdateStrategy{Type: "OnDelete", Partition: ptr.To(intstr.FromInt32(3))},
			meta: metav1.ObjectMeta{Annotations: map[string]string{PodUpdatePolicyKey: "InPlaceOnly"}},
		},
		{
			name: "fields of the pre-download are annotations, in the user's spelling where it means the same",
			in: rollingHub(v1beta1.RollingUpdateCloneSetUpdateStrategyType, &v1beta1.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: v1beta1.InPlaceIfPossiblePodUpdatePolicyType,
				InPlaceUpdateStrategy: &v1beta1.InPlaceUpdateStrategy{
					ImagePreDownloadParallelism: ptr.To(intstr.FromInt32(5)), ImagePreDownloadTimeoutSeconds: ptr.To[int32](600),
				}}, map[string]string{timeout: "0600", minReady: "9", parallelism: "4"}),
			want: CloneSetUpdateStrategy{Type: "InPlaceIfPossible"},
			meta: metav1.ObjectMeta{Annotations: map[string]string{timeout: "0600", parallelism: "5"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := older(t, &tc.in)
			if diff := cmp.Diff(tc.want, got.Spec.UpdateStrategy); diff != "" {
				t.Errorf("strategy (-want +got):\n%s", diff)
			}
			conversiondata.RemoveMetadata(&got.Annotations, conversiondata.NewerKey) // what is kept beside is tried below
			if diff := cmp.Diff(tc.meta, got.ObjectMeta); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALabelThatContradictsItsFieldIsGoneInTheOldVersion(t *testing.T) {
	hub := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{exclude: "true", "a": "b"}}}
	if diff := cmp.Diff(map[string]string{"a": "b"}, older(t, hub).Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	hub.Spec.ScaleStrategy.ExcludePreparingDelete, hub.Labels = true, nil
	if diff := cmp.Diff(map[string]string{exclude: "true"}, older(t, hub).Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestConversionRefusesAnotherHub(t *testing.T) {
	if err := (&CloneSet{}).ConvertTo(otherHub{}); err == nil {
		t.Error("converting to another hub succeeded")
	}
	if err := (&CloneSet{}).ConvertFrom(otherHub{}); err == nil {
		t.Error("converting from another hub succeeded")
	}
}

// What v1beta1 holds survives a v1alpha1 client that reads and writes it.
func TestTheHubSurvivesTheOldVersion(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hub := drawHub(rt)
		before := hub.DeepCopy()
		got := converted(t, older(t, hub))
		if diff := cmp.Diff(before, hub); diff != "" {
			rt.Fatalf("conversion changed its source (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before.Spec, got.Spec); diff != "" {
			rt.Fatalf("spec (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before.Status, got.Status); diff != "" {
			rt.Fatalf("status (-before +after):\n%s", diff)
		}
	})
}

// What a v1alpha1 client writes it reads again.
func TestTheOldVersionSurvivesTheHub(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawOld(rt)
		before := in.DeepCopy()
		got := older(t, converted(t, in))
		if diff := cmp.Diff(before, in); diff != "" {
			rt.Fatalf("conversion changed its source (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before, got); diff != "" {
			rt.Fatalf("(-before +after):\n%s", diff)
		}
	})
}

func TestAUsualCloneSetCarriesNothingAlong(t *testing.T) {
	kind := metav1.TypeMeta{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet"}
	in := of(CloneSetUpdateStrategy{Type: InPlaceIfPossibleCloneSetUpdateStrategyType, Partition: ptr.To(intstr.FromInt32(2))})
	in.TypeMeta = kind
	hub := converted(t, &in)
	hub.TypeMeta = metav1.TypeMeta{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet"}
	if len(hub.Annotations) > 0 || len(older(t, hub).Annotations) > 0 {
		t.Errorf("got %v, %v", hub.Annotations, older(t, hub).Annotations)
	}
}

// Nothing at all is lost, whatever stands in an object.
func TestCloneSetsSurviveTheOtherVersion(t *testing.T) {
	filler := apitest.NewWithAnnotations(20261121, map[string][]string{
		parallelism: {"5", "010%", "x"}, timeout: {"600", "+7"}, minReady: {"0", "99999999999"},
	}, func(k *v1beta1.CloneSetUpdateStrategyType, c randfill.Continue) {
		*k = v1beta1.CloneSetUpdateStrategyType(apitest.PickValue(c, "RollingUpdate", "OnDelete", ""))
	}, func(k *CloneSetUpdateStrategyType, c randfill.Continue) {
		*k = CloneSetUpdateStrategyType(apitest.PickValue(c, "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"))
	}, func(k *v1beta1.PodUpdatePolicyType, c randfill.Continue) {
		*k = v1beta1.PodUpdatePolicyType(apitest.PickValue(c, "ReCreate", "InPlaceIfPossible", "InPlaceOnly"))
	})
	apitest.RoundTrip(t, filler, &CloneSet{}, &v1beta1.CloneSet{})
}
