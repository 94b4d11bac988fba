// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

func TestTheNumbersOfAStrategy(t *testing.T) {
	value := func(v any) *intstr.IntOrString {
		if n, ok := v.(int); ok {
			return ptr.To(intstr.FromInt32(int32(n)))
		}
		return ptr.To(intstr.FromString(v.(string)))
	}
	type rollingUpdate = kruise.RollingUpdateCloneSetStrategy
	tests := map[string]struct {
		replicas int
		ru       *rollingUpdate
		onDelete bool
		scale    *intstr.IntOrString
		want     rollout.Strategy // beside Type, Policy and ScaleMaxUnavailable, where they are as usual
		fails    bool
	}{
		"an empty rolling update is 20 %, rounded up":       {11, &rollingUpdate{}, false, nil, rollout.Strategy{MaxUnavailable: 3}, false},
		"no rolling update is 20 %, rounded down":           {11, nil, false, nil, rollout.Strategy{MaxUnavailable: 2}, false},
		"OnDelete is 20 %, rounded down, and nothing else":  {11, &rollingUpdate{Partition: value(3), MaxSurge: value(2), MaxUnavailable: value(7), Paused: true}, true, nil, rollout.Strategy{Type: "OnDelete", MaxUnavailable: 2}, false},
		"a percentage rounds up without surge":              {11, &rollingUpdate{MaxUnavailable: value("25%")}, false, nil, rollout.Strategy{MaxUnavailable: 3}, false},
		"and down with surge":                               {11, &rollingUpdate{MaxUnavailable: value("25%"), MaxSurge: value(1)}, false, nil, rollout.Strategy{MaxUnavailable: 2, MaxSurge: 1}, false},
		"and may be none then":                              {4, &rollingUpdate{MaxSurge: value(1)}, false, nil, rollout.Strategy{MaxSurge: 1}, false},
		"a surge that resolves to nothing is no surge":      {11, &rollingUpdate{MaxUnavailable: value("25%"), MaxSurge: value("0%")}, false, nil, rollout.Strategy{MaxUnavailable: 3}, false},
		"surge rounds up":                                   {11, &rollingUpdate{MaxUnavailable: value(1), MaxSurge: value("10%")}, false, nil, rollout.Strategy{MaxUnavailable: 1, MaxSurge: 2}, false},
		"paused there is no surge, so it rounds up":         {11, &rollingUpdate{MaxUnavailable: value("25%"), MaxSurge: value(1), Paused: true}, false, nil, rollout.Strategy{MaxUnavailable: 3, Paused: true}, false},
		"the partition is a float and rounds up":            {10, &rollingUpdate{Partition: value("12.5%")}, false, nil, rollout.Strategy{MaxUnavailable: 2, Partition: 2}, false},
		"a partition that cannot be read is none":           {10, &rollingUpdate{Partition: value("most")}, false, nil, rollout.Strategy{MaxUnavailable: 2}, true},
		"maxUnavailable that cannot be read allows nothing": {10, &rollingUpdate{MaxUnavailable: value("5")}, false, nil, rollout.Strategy{}, true},
		"scaleStrategy.maxUnavailable rounds up":            {11, &rollingUpdate{}, false, value("10%"), rollout.Strategy{MaxUnavailable: 3, ScaleMaxUnavailable: 2}, false},
		"scaleStrategy.maxUnavailable that cannot be read":  {11, &rollingUpdate{}, false, value("x"), rollout.Strategy{MaxUnavailable: 3, ScaleMaxUnavailable: -1}, true},
		"of no replicas everything is none":                 {0, &rollingUpdate{Partition: value("50%"), MaxSurge: value("50%")}, false, nil, rollout.Strategy{}, false},
		"priorities and scatter terms are passed on": {
			1, &rollingUpdate{
				PriorityStrategy: &kruise.UpdatePriorityStrategy{
					WeightPriority: []kruise.UpdatePriorityWeightTerm{{Weight: 7}}, OrderPriority: []kruise.UpdatePriorityOrderTerm{{OrderedKey: "k"}},
				},
				ScatterStrategy: kruise.CloneSetUpdateScatterStrategy{{Key: "a", Value: "b"}},
				PodUpdatePolicy: "InPlaceOnly",
			}, false, nil,
			rollout.Strategy{Policy: "InPlaceOnly", MaxUnavailable: 1, Weights: []int{7}, OrderKeys: []string{"k"}, Scatter: []rollout.ScatterTerm{{Key: "a", Value: "b"}}}, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			set := &kruise.CloneSet{Spec: kruise.CloneSetSpec{Replicas: ptr.To(int32(tc.replicas))}}
			set.Spec.UpdateStrategy.RollingUpdate, set.Spec.ScaleStrategy.MaxUnavailable = tc.ru, tc.scale
			if tc.onDelete {
				set.Spec.UpdateStrategy.Type = kruise.OnDeleteCloneSetUpdateStrategyType
			}
			want := tc.want
			if want.Type == "" {
				want.Type = "RollingUpdate"
			}
			if want.Policy == "" {
				want.Policy = "ReCreate"
			}
			switch want.ScaleMaxUnavailable {
			case 0:
				want.ScaleMaxUnavailable = math.MaxInt32
			case -1:
				want.ScaleMaxUnavailable = 0
			}
			got, err := resolveStrategy(set)
			if diff := cmp.Diff(want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%v, %s", err, diff)
			}
		})
	}
	if got := desiredReplicas(&kruise.CloneSet{}); got != 1 {
		t.Errorf("replicas that are not set are %d", got)
	}
}
