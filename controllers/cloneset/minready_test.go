// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/rules"
)

// Pods that are ready for less than minReadySeconds are unavailable, so deleting them leaves as many available as before.
func TestPodsWithinMinReadySecondsAreDeleted(t *testing.T) {
	e := rules.Engine(t, "")
	for name, tc := range map[string]struct {
		change func(*life, *kruise.CloneSet)
		want   int
	}{
		"scaled in":   {func(_ *life, set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](2) }, 2},
		"scaled to 0": {func(_ *life, set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](0) }, 0},
		"by podsToDelete": {func(s *life, set *kruise.CloneSet) {
			set.Spec.Replicas = ptr.To[int32](4)
			set.Spec.ScaleStrategy.PodsToDelete = []string{s.ListPods()[2].Name}
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			set := simSet(5, nil)
			set.Spec.MinReadySeconds = 7200 // more than Settle takes
			s := newLife(t, e, gates{}, set)
			s.RunUntilStable()
			s.change(func(set *kruise.CloneSet) { tc.change(s, set) })
			asked := s.set().Spec.ScaleStrategy.PodsToDelete
			s.RunUntilStable()
			if got := len(s.ListPods()); got != tc.want {
				t.Errorf("there are %d pods, want %d%s", got, tc.want, s.DescribeState())
			}
			for _, p := range s.ListPods() {
				if len(asked) > 0 && p.Name == asked[0] {
					t.Errorf("pod %s is not deleted%s", p.Name, s.DescribeState())
				}
			}
		})
	}
}
