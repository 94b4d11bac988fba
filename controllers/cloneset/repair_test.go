// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/test/rules"
)

// A claim that a client deletes while its pod has no node is made again, and where that fails, a condition says so.
func TestClaimsOfPodsWithoutANodeAreMadeAgain(t *testing.T) {
	s := newLife(t, rules.Engine(t, ""), gates{}, claimSet(1, false))
	for range 5 {
		s.ShowAll(nil)
		s.ReconcileIfDue()
	}
	pods := s.ListPods()
	if len(pods) != 1 || pods[0].Spec.NodeName != "" {
		t.Fatalf("there are %d pods", len(pods))
	}
	claim := func() (uid types.UID) {
		for _, c := range simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness) {
			if c.DeletionTimestamp == nil {
				uid = c.UID
			}
		}
		return uid
	}
	s.DropClaim(simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness)[0])
	s.Now = s.Now.Add(time.Minute)
	s.ReconcileIfDue()
	if claim() != "" {
		t.Error("a claim is made before the scheduler has looked for it")
	}
	p := pods[0].DeepCopy()
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})
	s.UpdateStatus(p)
	broken := errors.New("quota exceeded")
	s.Deny = func(o client.Object, verb string) error {
		if _, ok := o.(*corev1.PersistentVolumeClaim); ok && verb == "create" {
			return broken
		}
		return nil
	}
	s.ShowAll(nil)
	s.Now = s.Now.Add(claimsAgain)
	s.ReconcileIfDue()
	s.ShowAll(nil)
	if c := findCondition(&s.set().Status, kruise.CloneSetConditionFailedScale); c == nil || !strings.Contains(c.Message, "quota exceeded") {
		t.Errorf("the condition is %+v", c)
	}
	broken, s.Deny = nil, nil
	s.Now = s.Now.Add(time.Minute)
	s.ReconcileIfDue()
	if claim() == "" {
		t.Errorf("the claim is not made again: %s", s.DescribeState())
	}
	made := len(s.ActionHistory())
	s.ShowAll(nil)
	s.Now = s.Now.Add(time.Minute)
	s.ReconcileIfDue()
	for _, h := range s.ActionHistory()[made:] {
		if strings.HasPrefix(h, "create ") {
			t.Errorf("again: %s", h)
		}
	}
	s.RunUntilStable()
	s.finished()
}

// A pod whose claim cannot be made keeps no other from the update.
func TestAClaimThatCannotBeMadeKeepsNoOtherPodFromTheUpdate(t *testing.T) {
	s := newLife(t, rules.Engine(t, ""), gates{}, claimSet(3, false))
	s.RunUntilStable()
	pod := s.ListPods()[0].DeepCopy()
	pod.Spec.NodeName = ""
	s.Update(pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}
	s.UpdateStatus(pod)
	for _, c := range simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness) {
		if c.Labels[kruise.CloneSetInstanceIDKey] == pod.Labels[kruise.CloneSetInstanceIDKey] {
			s.DropClaim(c)
		}
	}
	s.Deny = func(o client.Object, verb string) error {
		if _, ok := o.(*corev1.PersistentVolumeClaim); ok && verb == "create" {
			return errors.New("exceeded quota")
		}
		return nil
	}
	s.change(func(set *kruise.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Image = "web:2"
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(3))
	})
	for range 20 {
		s.ShowAll(nil)
		s.ReconcileIfDue()
		for _, p := range s.ListPods() {
			if p.Name != pod.Name {
				s.StepPod(p.Name)
			}
		}
		s.Now = s.Now.Add(time.Minute)
	}
	for _, p := range s.ListPods() {
		if p.Name != pod.Name && p.Spec.Containers[0].Image != "web:2" {
			t.Errorf("%s has image %s: %+v%s", p.Name, p.Spec.Containers[0].Image, s.set().Status.Conditions, s.DescribeState())
		}
	}
}
