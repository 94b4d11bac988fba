// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

func TestStrategyOfACloneSet(t *testing.T) {
	tests := []struct {
		name   string
		change func(*kruise.CloneSet)
		want   string
	}{
		{"as it is by default", func(s *kruise.CloneSet) { s.Spec.UpdateStrategy = kruise.CloneSetUpdateStrategy{} }, "RollingUpdate"},
		{"on delete", func(s *kruise.CloneSet) { s.Spec.UpdateStrategy.Type = "OnDelete" }, "OnDelete: a pod is updated when a client deletes it"},
		{"paused", func(s *kruise.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = true }, "RollingUpdate, InPlaceIfPossible, maxUnavailable 20%, paused"},
	}
	workload, _ := kinds.FindByGroupKind(kruise.Kind("CloneSet"))
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			set := &kruise.CloneSet{}
			set.Spec.UpdateStrategy = kruise.CloneSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: "InPlaceIfPossible", MaxUnavailable: ptr.To(intstr.FromString("20%")),
			}}
			tc.change(set)
			if got := workload.View(set).Strategy; got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
