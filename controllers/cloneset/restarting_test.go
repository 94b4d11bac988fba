// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// A pod whose restart in place is under way is available still, and uses up maxUnavailable all the same: one that a user
// asks to delete waits for it.
func TestARestartAndADeletionShareMaxUnavailable(t *testing.T) {
	set := claimSet(3, false)
	set.Spec.VolumeClaimTemplates = nil
	set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	s := newLife(t, simEngine(t), gates{}, set)
	s.Settle()
	pods := s.Pods()
	if len(pods) != 3 {
		t.Fatalf("%d pods", len(pods))
	}
	request := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: pods[0].Name + "-restart-1", Labels: map[string]string{kruise.RestartOfKey: string(s.Current().GetUID())},
	}}
	request.Spec.PodName = pods[0].Name
	s.Put(request)
	s.change(func(set *kruise.CloneSet) { set.Annotations = map[string]string{kruise.RestartInPlaceKey: "2026-01-01T00:00:00Z"} })
	asked := pods[1].DeepCopy()
	asked.Labels[kruise.SpecifiedDeleteKey] = "true"
	s.Update(asked)
	for range 3 {
		s.ShowAll(nil)
		s.Work()
	}
	for _, p := range s.Pods() {
		if p.DeletionTimestamp != nil {
			t.Errorf("%s is deleted while another pod restarts", p.Name)
		}
	}
	now := metav1.NewTime(s.Now)
	request.Status.CompletionTime = &now
	s.Put(request)
	s.Now = s.Timer
	for range 3 {
		s.ShowAll(nil)
		s.Work()
	}
	gone := true
	for _, p := range s.Pods() {
		gone = gone && (p.Name != asked.Name || p.DeletionTimestamp != nil)
	}
	if !gone {
		t.Errorf("%s is not deleted when the restart has ended", asked.Name)
	}
}
