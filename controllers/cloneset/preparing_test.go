// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/rules"
)

// With PreparingUpdateAsUpdate a pod that prepares its update counts as updated
// when pods are created. A scale-out that moves a partition in percent with the
// replicas adds a pod of the current revision then, and the update goes on.
func TestAScaleOutLeavesPreparingPodsTheirUpdate(t *testing.T) {
	e := rules.Engine(t, "")
	for name, tc := range map[string]struct {
		gate  bool
		limit *intstr.IntOrString // scaleStrategy.maxUnavailable
		kept  bool
	}{
		"with the gate":    {gate: true, kept: true},
		"without the gate": {},
		"not where no pod can be created while it is unavailable": {gate: true, limit: ptr.To(intstr.FromInt32(1))},
	} {
		t.Run(name, func(t *testing.T) {
			set := claimSet(3, false)
			set.Spec.VolumeClaimTemplates = nil
			set.Spec.ScaleStrategy.MaxUnavailable = tc.limit
			set.Spec.Lifecycle = &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{simHook: "on"}}}
			set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromString("75%")) // 2 of 3, 3 of 4
			s := newLife(t, e, gates{Gates: Gates{PreparingUpdateAsUpdate: tc.gate}}, set)
			s.RunUntilStable()
			work := func() { // the hook does not let go
				for range 8 {
					for _, p := range s.ListPods() {
						s.StepPod(p.Name)
					}
					s.ShowAll(nil)
					s.ReconcileIfDue()
				}
			}
			s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "1") })
			work()
			preparing := ""
			for _, p := range s.ListPods() {
				if p.Labels[kruise.LifecycleStateKey] == string(kruise.LifecycleStatePreparingUpdate) {
					preparing = p.Name
				}
			}
			if preparing == "" {
				t.Fatalf("no pod prepares its update%s", s.DescribeState())
			}
			s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](4) })
			work()
			s.RunUntilStable()
			s.finished()
			if got := s.CountPods(); got.Updated != 1 {
				t.Errorf("%d pods are updated, want 1", got.Updated)
			}
			for _, p := range s.ListPods() {
				if updated := p.Spec.Containers[0].Image == "web:2"; p.Name == preparing && updated != tc.kept {
					t.Errorf("the pod that prepared its update is updated: %t, want %t%s", updated, tc.kept, s.DescribeState())
				}
			}
		})
	}
}
