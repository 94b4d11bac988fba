// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

func TestStatefulSetFromHub(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   v1beta1.StatefulSet
		want StatefulSet
	}{
		{
			name: "what v1alpha1 can say needs no annotation",
			in:   v1beta1.StatefulSet{Spec: v1beta1.StatefulSetSpec{Replicas: ptr.To[int32](3), ServiceName: "web"}},
			want: StatefulSet{Spec: StatefulSetSpec{Replicas: ptr.To[int32](3), ServiceName: "web"}},
		},
		{
			name: "what only v1beta1 can say is kept, of spec and status",
			in: v1beta1.StatefulSet{
				Spec: v1beta1.StatefulSetSpec{
					ReserveOrdinals:                      []intstr.IntOrString{intstr.FromInt32(1), intstr.FromString("5-9")},
					VolumeClaimUpdateStrategy:            v1beta1.VolumeClaimUpdateStrategy{Type: v1beta1.OnDeleteVolumeClaimUpdateStrategyType},
					PersistentVolumeClaimRetentionPolicy: &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType},
					Ordinals:                             &v1beta1.StatefulSetOrdinals{},
				},
				Status: v1beta1.StatefulSetStatus{Replicas: 2, UpdatedReadyReplicas: 1},
			},
			want: StatefulSet{
				ObjectMeta: annotated(conversiondata.NewerKey, `{"volumeClaimUpdateStrategy":{"type":"OnDelete"},"reserveOrdinals":[1,"5-9"],`+
					`"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"},"ordinals":{},"updatedReadyReplicas":1}`),
				Status: StatefulSetStatus{Replicas: 2},
			},
		},
		{
			name: "an annotation that a v1beta1 object brought along says nothing",
			in:   v1beta1.StatefulSet{ObjectMeta: annotated(conversiondata.NewerKey, `{"ordinals":{"start":3}}`)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			apitest.RequireEqual(t, "converted", &tc.want, apitest.ConvertFromHub[StatefulSet](t, &tc.in))
		})
	}
}

func TestStatefulSetToHub(t *testing.T) {
	unreadable := `{"ordinals":{"start":3},"reserveOrdinals":"1"}`
	for _, tc := range []struct {
		name string
		in   StatefulSet
		want v1beta1.StatefulSet
	}{
		{
			name: "what was kept is fields again, and other annotations stay",
			in:   StatefulSet{ObjectMeta: annotated(conversiondata.NewerKey, `{"ordinals":{"start":3},"updatedAvailableReplicas":2}`, "a", "b")},
			want: v1beta1.StatefulSet{
				ObjectMeta: annotated("a", "b"),
				Spec:       v1beta1.StatefulSetSpec{Ordinals: &v1beta1.StatefulSetOrdinals{Start: 3}},
				Status:     v1beta1.StatefulSetStatus{UpdatedAvailableReplicas: 2},
			},
		},
		{
			name: "an annotation that cannot be read as a whole is no field at all",
			in:   StatefulSet{ObjectMeta: annotated(conversiondata.NewerKey, unreadable)},
			want: v1beta1.StatefulSet{ObjectMeta: annotated(conversiondata.NewerKey, unreadable)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			apitest.RequireEqual(t, "converted", &tc.want, apitest.Hub[v1beta1.StatefulSet](t, &tc.in))
		})
	}
}

func TestStatefulSetsSurviveTheOtherVersion(t *testing.T) {
	apitest.RoundTrip(t, newFiller(20261121), &StatefulSet{}, &v1beta1.StatefulSet{})
}
