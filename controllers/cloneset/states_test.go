// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/test/rules"
)

// TestPodsShowTheirStatesWithoutHooks holds that the states, which dashboards show, come with
// writes that a pod needs anyway: none is seen with the gate as it was before.
func TestPodsShowTheirStatesWithoutHooks(t *testing.T) {
	e := rules.Engine(t, "")
	for name, tc := range map[string]struct {
		change func(*kruise.CloneSet)
		want   string
	}{
		"an image": {
			func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "1") },
			"PreparingNormal/unset Normal/True Updating/False Normal/True",
		},
		"a label alone, for which no container restarts and no state is written": {
			func(set *kruise.CloneSet) { set.Spec.Template.Labels["team"] = "shop" },
			"PreparingNormal/unset Normal/True",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := claimSet(1, false)
			set.Spec.VolumeClaimTemplates = nil
			set.Spec.Replicas = ptr.To[int32](1)
			s := newLife(t, e, gates{}, set)
			var seen []string
			look := func() {
				for _, p := range s.ListPods() {
					gate := "unset"
					if c := inplace.FindCondition(p, kruise.InPlaceUpdateReady); c != nil {
						gate = string(c.Status)
					}
					if now := string(lifecycle.PodState(p)) + "/" + gate; len(seen) == 0 || seen[len(seen)-1] != now {
						seen = append(seen, now)
					}
				}
			}
			live := func() {
				for range 12 {
					s.ShowAll(nil)
					s.ReconcileIfDue()
					look()
					for _, p := range s.ListPods() {
						s.StepPod(p.Name)
					}
					look()
				}
			}
			live()
			s.change(tc.change)
			live()
			if got := strings.Join(slices.Compact(seen), " "); got != tc.want {
				t.Errorf("got %s, want %s%s", got, tc.want, s.DescribeState())
			}
		})
	}
}
