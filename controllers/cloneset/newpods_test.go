// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/test/rules"
)

const freezeAll = `package extend.rollout.freeze

import future.keywords.not

hold contains {"rule": "freeze", "reason": "Frozen", "message": "frozen"} if input.update != 0
`

const freezeSome = `package extend.rollout.some

import future.keywords.not

hold contains {"rule": "some", "reason": "Later", "message": "later", "pod": pod.name} if {
	some pod in input.pods
	not pod.updated
	not pod.labels.canary
}
`

const failsForEach = `package extend.rollout.waves

import future.keywords.not

hold contains {"rule": "waves", "reason": "Later", "message": "later", "pod": pod.name} if {
	some pod in input.pods
	to_number(pod.labels.app) > 1
}
`

const failsForAll = `package extend.rollout.all

hold contains {"rule": "all", "reason": "Later", "message": "later"} if to_number(input.workload.name) > 1
`

const failsToChange = `package override.rollout

change := {"action": "InPlace", "reason": "X", "message": "x"} if to_number(input.workload.name) > 1
`

// Pods of a revision that is held are not created, whatever they are created for.
func TestNoPodIsCreatedAtARevisionThatIsHeld(t *testing.T) {
	surge := func(set *kruise.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(5))
	}
	ask := func(s *life) {
		p := s.ListPods()[0].DeepCopy()
		p.Labels[kruise.SpecifiedDeleteKey] = "true"
		s.Update(p)
	}
	scaleOut := func(s *life) { s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](12) }) }
	for name, tc := range map[string]struct {
		rule    string
		edit    func(*kruise.CloneSet)
		then    func(*life)
		pods    int
		updated int
	}{
		"surge beside a pod that is asked to go":       {rule: freezeAll, edit: surge, then: ask, pods: 6},
		"surge":                                        {rule: freezeAll, edit: surge, pods: 6},
		"scale-out":                                    {rule: freezeAll, then: scaleOut, pods: 12},
		"a pod that is asked to go":                    {rule: freezeAll, then: ask, pods: 6},
		"surge while the rank has no answer":           {rule: failsForEach, edit: surge, pods: 6},
		"surge while single pods are held":             {rule: freezeSome, edit: surge, pods: 6},
		"scale-out while single pods are held":         {rule: freezeSome, then: scaleOut, pods: 12},
		"scale-out while the rank has no answer":       {rule: failsForEach, then: scaleOut, pods: 12},
		"a pod that is asked to go while each is held": {rule: freezeSome, then: ask, pods: 6},
		"a hold that wants them of the update still": {
			rule: `package extend.rollout.freeze

hold contains {"rule": "freeze", "reason": "Frozen", "message": "frozen", "newPods": "Update"} if input.update != 0
`, then: scaleOut, pods: 12, updated: 6,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := rules.Engine(t, "")
			b, err := bundle.FromFiles("hold", map[string]string{"hold.rego": tc.rule})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
				t.Fatal(err)
			}
			s := newLife(t, e, gates{}, simSet(6, tc.edit))
			s.RunUntilStable()
			if n := len(s.ListPods()); n != 6 {
				t.Fatalf("a first rollout makes %d pods", n)
			}
			s.change(func(set *kruise.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "web:2" })
			if tc.then != nil {
				tc.then(s)
			}
			s.RunUntilStable()
			updated := 0
			for _, p := range s.ListPods() {
				if p.Spec.Containers[0].Image == "web:2" {
					updated++
				}
			}
			if n := len(s.ListPods()); n != tc.pods || updated != tc.updated {
				t.Errorf("%d pods, %d of them updated; want %d and %d%s", n, updated, tc.pods, tc.updated, s.DescribeState())
			}
			if err := e.ActivateBundles(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			s.change(func(set *kruise.CloneSet) { set.Annotations = map[string]string{"freeze": "over"} }) // policies that change cause no round here
			s.RunUntilStable()
			for _, p := range s.ListPods() {
				if p.Spec.Containers[0].Image != "web:2" {
					t.Errorf("pod %s is not updated when the hold is gone%s", p.Name, s.DescribeState())
				}
			}
		})
	}
}

// A hold that counts the pods which are available does not undo the update that it counts: the
// pods that this took are created of its revision, else the rollout would never end.
func TestAHoldThatCountsDoesNotUndoAnUpdateThatWasBegun(t *testing.T) {
	e := rules.Engine(t, "")
	b, err := bundle.FromFiles("counts", map[string]string{"counts.rego": `package extend.rollout.counts

hold contains {"rule": "counts", "reason": "Missing", "message": "pods are missing"} if input.counts.available < input.workload.replicas
`})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	s := newLife(t, e, gates{}, simSet(3, func(set *kruise.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}))
	s.RunUntilStable()
	s.change(func(set *kruise.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "web:2" })
	s.RunUntilStable()
	for _, p := range s.ListPods() {
		if p.Spec.Containers[0].Image != "web:2" {
			t.Errorf("pod %s is not updated%s", p.Name, s.DescribeState())
		}
	}
}

// A pod whose hook has let it go for an update that is held since goes back to its services, also where the hold is that of a
// rule that fails, once it has failed for a minute.
func TestAHoldTakesAPodBackThatPreparedItsUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		rule  string
		fails bool
	}{
		"a freeze":                      {rule: freezeAll},
		"a rule of the plan that fails": {failsForAll, true},
		"a rule of pods that fails":     {failsForEach, true},
		"a rule of changes that fails":  {failsToChange, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := rules.Engine(t, "")
			s := newLife(t, e, gates{}, simSet(1, func(set *kruise.CloneSet) {
				set.Spec.Lifecycle = &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{LabelsHandler: map[string]string{simHook: "on"}, MarkPodNotReady: true}}
				set.Spec.Template.Labels[simHook] = "on"
			}))
			s.RunUntilStable()
			s.change(func(set *kruise.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "web:2" })
			state := func() string { return s.ListPods()[0].Labels[kruise.LifecycleStateKey] }
			for range 8 { // the hook does not let go
				s.StepPod(s.ListPods()[0].Name)
				s.ShowAll(nil)
				s.ReconcileIfDue()
			}
			if state() != string(kruise.LifecycleStatePreparingUpdate) {
				t.Fatalf("the pod is in state %q%s", state(), s.DescribeState())
			}
			b, err := bundle.FromFiles("hold", map[string]string{"hold.rego": tc.rule})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
				t.Fatal(err)
			}
			if tc.fails {
				for range 3 {
					s.ReconcileIfDue()
				}
				if state() != string(kruise.LifecycleStatePreparingUpdate) {
					t.Errorf("the pod does not wait for a decision that may come: it is in state %q%s", state(), s.DescribeState())
				}
				s.Now = s.Now.Add(2 * time.Minute)
			}
			s.RunUntilStable()
			p := s.ListPods()[0]
			if p.Spec.Containers[0].Image != "web:1" || state() != string(kruise.LifecycleStateNormal) {
				t.Errorf("image %s in state %q; want web:1 and Normal%s", p.Spec.Containers[0].Image, state(), s.DescribeState())
			}
		})
	}
}

// A policy that answers InPlace for what cannot be changed in place does not have pods labelled
// with a revision that they do not run.
func TestAnOverrideCannotChangeInPlaceWhatARunningPodCannotTake(t *testing.T) {
	e := rules.Engine(t, "")
	b, err := bundle.FromFiles("inplace", map[string]string{"inplace.rego": `package override.rollout

change := {"action": "InPlace", "reason": "X", "message": "x"}
`})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	s := newLife(t, e, gates{}, simSet(2, nil))
	s.RunUntilStable()
	before := s.set().Status.UpdateRevision
	s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "2") })
	for range 5 {
		s.ReconcileIfDue()
		s.ShowAll(nil)
	}
	for _, p := range s.ListPods() {
		if p.Labels["controller-revision-hash"] != before || p.Spec.Containers[0].Image != "web:1" {
			t.Errorf("pod %s is labelled %s", p.Name, p.Labels["controller-revision-hash"])
		}
	}
	held := findCondition(&s.set().Status, kruise.CloneSetConditionUpdateHeld)
	if held == nil || held.Status != "True" || held.Reason != "NotInPlace" {
		t.Errorf("the condition is %+v", held)
	}
}

// What replaces the pods of an update is there before them with surge: a pod that is missing later is none of theirs.
func TestSurgeLeavesNoPodToBeCreatedAtARevisionThatIsHeldSince(t *testing.T) {
	s := newLife(t, rules.Engine(t, simulation.HoldRules), gates{}, simSet(4, func(set *kruise.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
		set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(2))
	}))
	s.RunUntilStable()
	s.change(func(set *kruise.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "web:2" })
	s.RunUntilStable()
	s.change(func(set *kruise.CloneSet) { set.Annotations = map[string]string{simulation.HoldWhole: "Current"} })
	for _, p := range s.ListPods() {
		s.Delete(p)
	}
	s.RunUntilStable()
	for _, p := range s.ListPods() {
		if p.Spec.Containers[0].Image != "web:1" {
			t.Errorf("pod %s is of the revision that is held%s", p.Name, s.DescribeState())
		}
	}
}
