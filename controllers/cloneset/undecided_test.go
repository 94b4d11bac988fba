// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/test/rules"
)

// simSet is a CloneSet of n pods whose rolling update is changed by edit.
func simSet(n int32, edit func(*kruise.CloneSet)) *kruise.CloneSet {
	set := &kruise.CloneSet{Spec: kruise.CloneSetSpec{
		Replicas: ptr.To(n),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: simTemplate("web:1", "1"),
		UpdateStrategy: kruise.CloneSetUpdateStrategy{RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{
			PodUpdatePolicy: kruise.InPlaceIfPossiblePodUpdatePolicyType, MaxUnavailable: ptr.To(intstr.FromString("100%")),
		}},
	}}
	if edit != nil {
		edit(set)
	}
	return set
}

// A label that a platform rule cannot read must not let the pods go that the rule
// holds: without a rank every candidate is held, and the condition says so.
func TestARankThatFailsHoldsEveryCandidate(t *testing.T) {
	e := rules.Engine(t, "")
	b, err := bundle.FromFiles("waves", map[string]string{"waves.rego": `package extend.rollout.waves

import future.keywords.not

hold contains {"rule": "waves", "reason": "LaterWave", "message": "later", "pod": pod.name} if {
	some pod in input.pods
	to_number(pod.labels.wave) > 1
}
`})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	s := newLife(t, e, gates{}, simSet(4, func(set *kruise.CloneSet) { set.Spec.Template.Labels["wave"] = "2" }))
	s.RunUntilStable()
	change := func(image string) {
		s.change(func(set *kruise.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = image })
		s.RunUntilStable()
	}
	updated := func() (n int) {
		for _, p := range s.ListPods() {
			if p.Spec.Containers[0].Image == "web:2" {
				n++
			}
		}
		return n
	}
	change("web:2")
	if n := updated(); n != 0 {
		t.Fatalf("the rule holds all, and %d are updated", n)
	}
	p := s.ListPods()[1].DeepCopy()
	p.Labels["wave"] = "two"
	s.Update(p)
	s.RunUntilStable()
	if n := updated(); n != 0 {
		t.Errorf("one label that the rule cannot read let %d pods go", n)
	}
	held := findCondition(&s.set().Status, kruise.CloneSetConditionUpdateHeld)
	if held == nil || held.Status != "True" || held.Reason != "NoDecision" {
		t.Errorf("the condition is %+v", held)
	}
}

// A decision about the change of a pod that does not come leaves the pod alone, and
// is asked for again.
func TestAChangeThatIsNotDecidedLeavesThePodAlone(t *testing.T) {
	e := rules.Engine(t, "")
	b, err := bundle.FromFiles("broken", map[string]string{"broken.rego": `package override.rollout

import future.keywords.not

change := {"action": "InPlace", "reason": "X", "message": "x"} if to_number(input.workload.annotations.ticket) > 0
`})
	if err != nil {
		t.Fatal(err)
	}
	s := newLife(t, e, gates{}, simSet(3, nil))
	s.RunUntilStable()
	uids := map[string]bool{}
	for _, p := range s.ListPods() {
		uids[string(p.UID)] = true
	}
	if err := e.ActivateBundles(context.Background(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	s.change(func(set *kruise.CloneSet) {
		set.Spec.Template.Spec.Containers[0].Image = "web:2"
		set.Annotations = map[string]string{"ticket": "none"}
	})
	for range 5 {
		s.ReconcileIfDue()
		s.ShowAll(nil)
	}
	for _, p := range s.ListPods() {
		if !uids[string(p.UID)] || p.DeletionTimestamp != nil || p.Spec.Containers[0].Image != "web:1" {
			t.Errorf("pod %s was changed by no decision", p.Name)
		}
	}
	if s.Timer.IsZero() {
		t.Error("it is not asked for again")
	}
	held := findCondition(&s.set().Status, kruise.CloneSetConditionUpdateHeld)
	if held == nil || held.Status != "True" || held.Reason != "NoDecision" {
		t.Errorf("the condition is %+v", held)
	}
	if err := e.ActivateBundles(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	s.RunUntilStable()
	for _, p := range s.ListPods() {
		if !uids[string(p.UID)] || p.Spec.Containers[0].Image != "web:2" {
			t.Errorf("pod %s is not updated in place after the policy is mended", p.Name)
		}
	}
}
