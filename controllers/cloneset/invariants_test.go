// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/test/rules"
)

// greedy replaces every point of rollouts by an answer that wants all at once.
const greedy = `package override.rollout

plan := {"limit": 1000, "maxUnavailable": 1000, "holds": [], "scatter": []}

change := {"action": "InPlace", "reason": "Greedy", "message": "Everything goes."}

rank := {
	"keys": [[0] | some _ in input.pods],
	"descending": [],
	"lead": [[0] | some _ in input.pods],
	"holds": [],
}

rows := {"order": array.concat([pod.name | some pod in input.rows], [pod.name | some pod in input.rows])}

scale := {
	"create": 1000, "createCurrent": 0, "delete": 1000, "deleteCurrent": 0,
	"keep": [pod.name | some pod in input.preparing], "planned": "All",
	"keys": [[0] | some _ in input.pods],
	"then": [[0] | some _ in input.pods],
	"descending": [], "holds": [],
}
`

// A bundle that replaces every decision cannot pass what Go holds them to. The simulated
// cluster judges each write: never more pods unavailable than maxUnavailable, never more
// pods than maxSurge allows, never more updated than the partition lets go.
func TestAnOverrideThatWantsEverythingIsClamped(t *testing.T) {
	e := greedyEngine(t)
	for name, edit := range map[string]func(*kruise.CloneSet){
		"in place, with a partition": func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(2))
		},
		"recreated": func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = kruise.RecreatePodUpdatePolicyType
		},
		"with surge": func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
		},
		"created a few at a time": func(set *kruise.CloneSet) {
			set.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLife(t, e, gates{}, simSet(6, func(set *kruise.CloneSet) {
				set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1))
				edit(set)
			}))
			s.RunUntilStable()
			s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "1") })
			if name == "with surge" { // it deletes the pods that it creates, and never comes to rest
				for range 100 {
					for _, p := range s.ListPods() {
						s.StepPod(p.Name)
					}
					s.ShowAll(nil)
					s.ReconcileIfDue()
					s.Now = s.Now.Add(time.Second)
				}
				return
			}
			s.RunUntilStable()
			want := 6 - int(rolloutPartition(s.set()))
			if got := s.CountPods().Updated; got != want {
				t.Errorf("%d pods are updated, want %d", got, want)
			}
			s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](3) })
			s.RunUntilStable()
			s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](7) })
			s.RunUntilStable()
			if got := s.CountPods(); got.Active != 7 || got.Available != 7 {
				t.Errorf("in the end there are %+v, want 7", got)
			}
		})
	}
}

func rolloutPartition(set *kruise.CloneSet) int32 {
	if p := set.Spec.UpdateStrategy.RollingUpdate.Partition; p != nil {
		return p.IntVal
	}
	return 0
}

// greedyEngine is an engine with the greedy bundle.
func greedyEngine(t *testing.T) *engine.Engine {
	t.Helper()
	return rules.Engine(t, greedy)
}

// held lets everything happen but what hooks wait for.
func (s *life) held() {
	for range 20 {
		for _, p := range s.ListPods() {
			s.StepPod(p.Name)
		}
		s.ShowAll(nil)
		s.ReconcileIfDue()
		s.Now = s.Now.Add(time.Second)
	}
}

// states counts the pods by lifecycle state.
func (s *life) states() map[kruise.LifecycleStateType]int {
	out := map[kruise.LifecycleStateType]int{}
	for _, p := range s.ListPods() {
		out[kruise.LifecycleStateType(p.Labels[kruise.LifecycleStateKey])]++
	}
	return out
}

// hookedSet has pods that hooks hold before updates and deletions.
func hookedSet(n int32) *kruise.CloneSet {
	return simSet(n, func(set *kruise.CloneSet) {
		hook := &kruise.LifecycleHook{LabelsHandler: map[string]string{simHook: "on"}}
		set.Spec.Lifecycle = &kruise.Lifecycle{PreDelete: hook, InPlaceUpdate: hook}
	})
}

// Pods that hooks hold are neither deleted nor updated, though an override wants both at
// once.
func TestAnOverrideDoesNotPassAHook(t *testing.T) {
	s := newLife(t, greedyEngine(t), gates{}, hookedSet(6))
	s.RunUntilStable()
	s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](4) })
	s.held()
	if got := s.states(); got[kruise.LifecycleStatePreparingDelete] != 2 || got[kruise.LifecycleStateNormal] != 4 {
		t.Fatalf("the pods are %v, want 2 that prepare their deletion of 6", got)
	}
	s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "1") })
	s.held()
	if got := s.states(); got[kruise.LifecycleStatePreparingUpdate] == 0 || len(s.ListPods()) != 6 {
		t.Errorf("the pods are %v, want some that prepare their update", got)
	}
	for _, p := range s.ListPods() {
		if image := p.Spec.Containers[0].Image; image != "web:1" {
			t.Errorf("pod %s in state %s has the image %s", p.Name, p.Labels[kruise.LifecycleStateKey], image)
		}
	}
}

// Of the pods that prepare their deletion only as many come back as are needed, though an
// override names them all.
func TestAnOverrideKeepsOnlyPodsThatAreNeeded(t *testing.T) {
	s := newLife(t, greedyEngine(t), gates{}, hookedSet(6))
	s.RunUntilStable()
	s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](3) })
	s.held()
	if got := s.states()[kruise.LifecycleStatePreparingDelete]; got != 3 {
		t.Fatalf("%d pods prepare their deletion, want 3", got)
	}
	s.change(func(set *kruise.CloneSet) { set.Spec.Replicas = ptr.To[int32](4) })
	s.held()
	if got := s.states()[kruise.LifecycleStatePreparingDelete]; got != 2 {
		t.Errorf("%d pods prepare their deletion, want 2: one more is needed%s", got, s.DescribeState())
	}
}

// A pod whose budget is used up is not restarted, though an override wants it.
func TestAnOverrideDoesNotPassABudget(t *testing.T) {
	s := newLife(t, greedyEngine(t), gates{}, simSet(3, nil))
	s.RunUntilStable()
	s.Options = append(s.Options, rollout.WithBudget(func(context.Context, *corev1.Pod) (*decision.Hold, error) {
		return &decision.Hold{Reason: "BudgetExceeded", Message: "The budget is used up."}, nil
	}))
	s.RestartController()
	s.change(func(set *kruise.CloneSet) { set.Spec.Template = simTemplate("web:2", "1") })
	s.held()
	for _, p := range s.ListPods() {
		if image := p.Spec.Containers[0].Image; image != "web:1" {
			t.Errorf("pod %s has the image %s", p.Name, image)
		}
	}
}

// A pod whose revision is gone from history stays as it is, though an override wants it
// changed in place: there is nothing to change it by.
func TestAnOverrideCannotChangeAPodOfAnUnknownRevision(t *testing.T) {
	s := newLife(t, greedyEngine(t), gates{}, simSet(2, nil))
	s.RunUntilStable()
	p := s.ListPods()[0].DeepCopy()
	p.Labels["controller-revision-hash"], p.Labels["pod-template-hash"] = "web-gone", "gone"
	s.Update(p)
	s.RunUntilStable()
	got := s.FindPod(p.Name)
	if got.UID != p.UID || got.Labels["controller-revision-hash"] != "web-gone" {
		t.Errorf("the pod has labels %v", got.Labels)
	}
}
