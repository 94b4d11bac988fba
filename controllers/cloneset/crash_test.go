// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/test/proptest"
	"github.com/regatta-sh/regatta/test/rules"
)

// A CloneSet is made and rolled out, and the controller ends just before or just
// after a write, at each of them in turn, and is started again: no instant is
// beyond maxUnavailable, maxSurge or the partition, and the end is the same. With
// the race detector it ends at some of them.
func TestTheControllerEndsAtAnyWriteOfARollout(t *testing.T) {
	inPlace := func(ru *kruise.RollingUpdateCloneSetStrategy) {
		ru.PodUpdatePolicy = kruise.InPlaceIfPossiblePodUpdatePolicyType
	}
	rollouts := map[string]func(*kruise.CloneSet){
		"recreate": func(*kruise.CloneSet) {},
		"recreate, with claims and surge": func(set *kruise.CloneSet) {
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
			set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
		},
		"in place": func(set *kruise.CloneSet) { inPlace(set.Spec.UpdateStrategy.RollingUpdate) },
		"in place, with hooks and a grace period": func(set *kruise.CloneSet) {
			inPlace(set.Spec.UpdateStrategy.RollingUpdate)
			set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: 5}
			hook := &kruise.LifecycleHook{LabelsHandler: map[string]string{simHook: "on"}, MarkPodNotReady: true}
			set.Spec.Lifecycle = &kruise.Lifecycle{PreDelete: hook, InPlaceUpdate: hook, PreNormal: hook}
		},
	}
	e := rules.Engine(t, "")
	lives := 0
	for name, edit := range rollouts {
		t.Run(name, func(t *testing.T) {
			set := &kruise.CloneSet{Spec: kruise.CloneSetSpec{
				Replicas: ptr.To[int32](3),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: simTemplate("web:1", "1"),
				UpdateStrategy: kruise.CloneSetUpdateStrategy{RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: kruise.RecreatePodUpdatePolicyType,
					MaxUnavailable:  ptr.To(intstr.FromInt32(1)), Partition: ptr.To(intstr.FromInt32(1)),
				}},
			}}
			edit(set)
			// live ends the controller at a write, and says how many writes there were.
			live := func(at int, how simulation.Fault) (writes int) {
				lives++
				s := newLife(t, e, gates{}, set)
				s.Fault = func() simulation.Fault {
					if writes++; writes == at {
						return how
					}
					return simulation.NoFault
				}
				s.RunUntilStable()
				s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "1") })
				s.RunUntilStable()
				s.finished()
				if got := s.CountPods(); got.Updated != 2 {
					t.Fatalf("%d pods are updated, want 2%s", got.Updated, s.DescribeState())
				}
				return writes
			}
			writes := live(0, simulation.NoFault)
			if writes < 5*3 {
				t.Fatalf("a rollout of 3 pods took %d writes: it is not what this test is for", writes)
			}
			step := 8 / proptest.Often(8)
			for at := 1; at <= writes; at += step {
				live(at, simulation.EndsBefore)
				live(at, simulation.EndsAfter)
			}
			t.Logf("ended before and after every write of %d, by steps of %d", writes, step)
		})
	}
}
