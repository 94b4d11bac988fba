// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

func TestUnitedDeploymentStatusToHub(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   UnitedDeploymentStatus
		want v1beta1.UnitedDeploymentStatus
		kept string
	}{
		{name: "no status is no status"},
		{
			name: "the updated revision has a place of its own",
			in:   UnitedDeploymentStatus{UpdateStatus: &UpdateStatus{UpdatedRevision: "r2"}},
			want: v1beta1.UnitedDeploymentStatus{UpdatedRevision: "r2"},
		},
		{
			name: "maps that say what the statuses say are not kept",
			in: UnitedDeploymentStatus{
				SubsetReplicas: map[string]int32{"a": 3}, UpdateStatus: &UpdateStatus{CurrentPartitions: map[string]int32{"a": 1}},
				SubsetStatuses: []v1beta1.UnitedDeploymentSubsetStatus{{Name: "a", Replicas: 3, Partition: 1, ReadyReplicas: 2}},
			},
			want: v1beta1.UnitedDeploymentStatus{SubsetStatuses: []v1beta1.UnitedDeploymentSubsetStatus{{Name: "a", Replicas: 3, Partition: 1, ReadyReplicas: 2}}},
		},
		{
			name: "subsets that only maps know get statuses, in the order of their names",
			in: UnitedDeploymentStatus{
				SubsetReplicas: map[string]int32{"b": 4, "c": 2}, UpdateStatus: &UpdateStatus{CurrentPartitions: map[string]int32{"a": 1, "c": 2}},
			},
			want: v1beta1.UnitedDeploymentStatus{SubsetStatuses: []v1beta1.UnitedDeploymentSubsetStatus{
				{Name: "a", Partition: 1}, {Name: "b", Replicas: 4}, {Name: "c", Replicas: 2, Partition: 2},
			}},
			kept: `{"subsetReplicas":{"b":4,"c":2},"updateStatus":{"currentPartitions":{"a":1,"c":2}}}`,
		},
		{
			name: "a status wins over the maps, which are kept",
			in: UnitedDeploymentStatus{
				SubsetReplicas: map[string]int32{"a": 9}, SubsetStatuses: []v1beta1.UnitedDeploymentSubsetStatus{{Name: "a", Replicas: 3}},
			},
			want: v1beta1.UnitedDeploymentStatus{SubsetStatuses: []v1beta1.UnitedDeploymentSubsetStatus{{Name: "a", Replicas: 3}}},
			kept: `{"subsetReplicas":{"a":9},"subsetStatuses":[{"name":"a","replicas":3}]}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := &v1beta1.UnitedDeployment{}
			if err := (&UnitedDeployment{Status: tc.in}).ConvertTo(got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Status); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Annotations[conversiondata.OlderKey] != tc.kept {
				t.Errorf("kept %s, want %s", got.Annotations[conversiondata.OlderKey], tc.kept)
			}
		})
	}
}

func TestUnitedDeploymentStatusFromHub(t *testing.T) {
	three := []v1beta1.UnitedDeploymentSubsetStatus{{Name: "a", Replicas: 3, Partition: 1}}
	for _, tc := range []struct {
		name string
		in   v1beta1.UnitedDeploymentStatus
		kept string
		want UnitedDeploymentStatus
	}{
		{name: "no status is no status"},
		{
			name: "the maps say what the statuses say",
			in:   v1beta1.UnitedDeploymentStatus{UpdatedRevision: "r2", SubsetStatuses: three},
			want: UnitedDeploymentStatus{
				SubsetStatuses: three, SubsetReplicas: map[string]int32{"a": 3},
				UpdateStatus: &UpdateStatus{UpdatedRevision: "r2", CurrentPartitions: map[string]int32{"a": 1}},
			},
		},
		{
			name: "maps that were kept come back",
			in:   v1beta1.UnitedDeploymentStatus{SubsetStatuses: three}, kept: `{"subsetReplicas":{"a":3},"updateStatus":{"currentPartitions":{"a":1}}}`,
			want: UnitedDeploymentStatus{SubsetReplicas: map[string]int32{"a": 3}, UpdateStatus: &UpdateStatus{CurrentPartitions: map[string]int32{"a": 1}}},
		},
		{
			name: "a status that was written since wins over maps that were kept",
			in:   v1beta1.UnitedDeploymentStatus{SubsetStatuses: three}, kept: `{"subsetReplicas":{"a":2}}`,
			want: UnitedDeploymentStatus{
				SubsetStatuses: three, SubsetReplicas: map[string]int32{"a": 3},
				UpdateStatus: &UpdateStatus{CurrentPartitions: map[string]int32{"a": 1}},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hub, got := &v1beta1.UnitedDeployment{Status: tc.in}, &UnitedDeployment{}
			if tc.kept != "" {
				hub.Annotations = map[string]string{conversiondata.OlderKey: tc.kept}
			}
			if err := got.ConvertFrom(hub); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Status); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(metav1.ObjectMeta{}, got.ObjectMeta); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnitedDeploymentsSurviveTheirVersions(t *testing.T) {
	filler := apitest.New(8).Funcs(
		func(in *v1beta1.UnitedDeploymentSubsetStatus, c randfill.Continue) {
			c.FillNoCustom(in)
			in.Name, in.Replicas, in.Partition = apitest.PickValue(c, "a", "b"), c.Int31n(3), c.Int31n(2)
		},
		// All of it goes through as one field, and it is large.
		func(in *v1beta1.SubsetTemplate, c randfill.Continue) {
			if c.Intn(10) == 0 {
				c.FillNoCustom(in)
			}
		},
		func(in *map[string]int32, c randfill.Continue) {
			for range c.Intn(4) {
				if *in == nil {
					*in = map[string]int32{}
				}
				(*in)[apitest.PickValue(c, "a", "b", "c")] = c.Int31n(3)
			}
		},
	)
	apitest.RoundTrip(t, filler, &UnitedDeployment{}, &v1beta1.UnitedDeployment{})
}
