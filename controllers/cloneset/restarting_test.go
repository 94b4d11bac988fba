// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/rules"
)

// A pod whose restart in place is under way is available still, and uses up maxUnavailable all the same: one that a user
// asks to delete waits for it.
func TestARestartAndADeletionShareMaxUnavailable(t *testing.T) {
	for name, restarts := range map[string]bool{"no pod restarts": false, "another pod restarts": true} {
		t.Run(name, func(t *testing.T) {
			set := claimSet(3, false)
			set.Spec.VolumeClaimTemplates = nil
			set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
			s := newLife(t, rules.Engine(t, ""), gates{}, set)
			s.RunUntilStable()
			pods := s.ListPods()
			if len(pods) != 3 {
				t.Fatalf("%d pods", len(pods))
			}
			s.change(func(set *kruise.CloneSet) {
				set.Annotations = map[string]string{kruise.RestartInPlaceKey: "2020-01-01T00:00:00Z"}
			})
			if restarts {
				request := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
					Namespace: pods[0].Namespace, Name: pods[0].Name + "-restart-1", Labels: map[string]string{kruise.RestartOfKey: string(s.CurrentWorkload().GetUID())},
				}}
				request.Spec.PodName = pods[0].Name
				s.AddObject(request)
			}
			asked := pods[1].DeepCopy()
			asked.Labels[kruise.SpecifiedDeleteKey] = "true"
			s.Update(asked)
			for range 3 {
				s.ShowAll(nil)
				s.Reconcile()
			}
			deleted := s.FindPod(asked.Name) == nil || s.FindPod(asked.Name).DeletionTimestamp != nil
			if deleted == restarts {
				t.Errorf("deleted is %t%s", deleted, s.DescribeState())
			}
		})
	}
}
