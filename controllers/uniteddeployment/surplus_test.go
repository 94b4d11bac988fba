// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// A subset that has another name, and children of another kind, go as pods that take their places become available.
func TestChildrenThatAreToGoStandIn(t *testing.T) {
	rename := func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[2].Name = "d" }
	for name, tc := range map[string]struct {
		prepare func(*world)
		edit    func(*kruise.UnitedDeployment)
		// first are the children of the round after the edit, then those once pods have run for a second, and late those of a
		// minute later. said is the end of the condition by then.
		first, then, late, said string
	}{
		"a subset that is renamed": {edit: rename, first: "a=3 b=3 c=3 d=3", then: "a=3 b=3 d=3", late: "a=3 b=3 d=3"},
		"a subset that is taken out": {
			edit:  func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets = d.Spec.Topology.Subsets[:2] },
			first: "a=4 b=5 c=3", then: "a=4 b=5", late: "a=4 b=5",
		},
		"a subset that is taken out with its replicas": {
			edit: func(d *kruise.UnitedDeployment) {
				d.Spec.Topology.Subsets, *d.Spec.Replicas = d.Spec.Topology.Subsets[:2], 6
			},
			first: "a=3 b=3", then: "a=3 b=3", late: "a=3 b=3",
		},
		"a subset without a ready pod": {
			prepare: func(w *world) {
				for _, pod := range w.podsOf("c") {
					w.crashing[pod.Name] = true
				}
				w.run()
			},
			edit: rename, first: "a=3 b=3 d=3", then: "a=3 b=3 d=3", late: "a=3 b=3 d=3",
		},
		"half of the new pods crash": {
			edit: rename, prepare: func(w *world) { w.crash = map[string]int{"d": 2} },
			first: "a=3 b=3 c=3 d=3", then: "a=3 b=3 c=2 d=3", late: "a=3 b=3 c=2 d=3",
			said: "WaitingForSubsets: Workloads that are to go stay until as many pods of the subsets are available: c (2).",
		},
		"new pods find no room, which the old ones may have": {
			edit: rename, prepare: func(w *world) { w.room["d"] = 0 },
			first: "a=3 b=3 c=3 d=3", then: "a=3 b=3 c=3 d=3", late: "a=3 b=3 c=1 d=3",
			said: "Workloads that are to go stay until as many pods of the subsets are available: c (1).",
		},
		"new pods select no node": {
			edit: func(d *kruise.UnitedDeployment) {
				rename(d)
				d.Spec.Topology.Subsets[2].NodeSelectorTerm.MatchExpressions[0].Values = []string{"nowhere"}
			},
			prepare: func(w *world) { w.room["d"] = 0 },
			first:   "a=3 b=3 c=3 d=3", then: "a=3 b=3 c=3 d=3", late: "a=3 b=3 c=3 d=3",
			said: "NoNodes: No node has the labels that these subsets require, so their pods wait: d. Workloads that are to go stay until as many pods of the subsets are available: c (3).",
		},
		"another kind": {
			edit:  func(d *kruise.UnitedDeployment) { d.Spec.Template = ofDeployment(pods("nginx:1")) },
			first: "a=3 a=3 b=3 b=3 c=3 c=3", then: "a=3 a=3 b=3 b=3 c=3 c=3", late: "a=3 a=3 b=3 b=3 c=3 c=3",
			said: "WaitingForSubsets: Workloads that are to go stay until as many pods of the subsets are available: a (3), b (3), c (3).",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(d *kruise.UnitedDeployment) { *d.Spec.Replicas = 9 })
			w.zoneNodes("a", "b", "c")
			w.settle(2 * time.Second)
			if tc.prepare != nil {
				tc.prepare(w)
			}
			w.edit(tc.edit)
			w.reconcile()
			if got := w.counts(); got != tc.first {
				t.Errorf("after the edit the subsets have %s, want %s", got, tc.first)
			}
			w.run()
			w.reconcile()
			if got := w.counts(); got != tc.then {
				t.Errorf("once pods have run the subsets have %s, want %s", got, tc.then)
			}
			w.settle(time.Minute)
			if got, said := w.counts(), w.places(); got != tc.late || !strings.HasSuffix(said, tc.said) || tc.said == "" && said != "" && !strings.HasPrefix(said, "Placing") {
				t.Errorf("a minute later the subsets have %s, want %s; the condition is %q", got, tc.late, said)
			}
		})
	}
}

// A lost race is no failure that users are told: the status of a child that is scaled in changes all the time.
func TestALostRaceWithAChildThatIsToGoIsNotTold(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) { *d.Spec.Replicas = 9 })
	w.zoneNodes("a", "b", "c")
	w.settle(2 * time.Second)
	w.crash = map[string]int{"d": 2}
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[2].Name = "d" })
	w.reconcile()
	w.run()
	w.told()
	raced := false
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{Update: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.UpdateOption) error {
		raced = true
		return apierrors.NewConflict(schema.GroupResource{Group: kruise.GroupVersion.Group, Resource: "clonesets"}, o.GetName(), nil)
	}})
	_, _ = w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}) // whether it fails is no matter of what is told
	if told := w.told(); len(told) > 0 || !raced {
		t.Errorf("told is %q; the child was scaled: %t", told, raced)
	}
}

// While a quota is used up, new pods wait for the old ones to go, and these for the new ones: some are given up.
func TestPodsThatCannotBeCreatedGetTheRoomOfThoseThatStandIn(t *testing.T) {
	labels := metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}
	for name, template := range map[string]kruise.SubsetTemplate{
		"CloneSet":    {CloneSetTemplate: &kruise.CloneSetTemplateSpec{ObjectMeta: labels, Spec: kruise.CloneSetSpec{Template: pods("nginx:1")}}},
		"StatefulSet": {AdvancedStatefulSetTemplate: &kruise.AdvancedStatefulSetTemplateSpec{ObjectMeta: labels, Spec: kruise.StatefulSetSpec{Template: pods("nginx:1")}}},
		"native":      {StatefulSetTemplate: &kruise.StatefulSetTemplateSpec{ObjectMeta: labels, Spec: appsv1.StatefulSetSpec{Template: pods("nginx:1")}}},
		"Deployment":  ofDeployment(pods("nginx:1")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(d *kruise.UnitedDeployment) { d.Spec.Replicas, d.Spec.Template = ptr.To[int32](9), template })
			w.zoneNodes("a", "b", "c")
			w.reconcile()
			w.runWithin(9)
			w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[2].Name = "d" })
			for range 10 {
				w.reconcile()
				w.runWithin(9)
				w.now = w.now.Add(time.Second)
			}
			if got := w.counts(); got != "a=3 b=3 d=3" {
				t.Errorf("in the end the subsets have %s, want a=3 b=3 d=3; the condition is %q", got, w.places())
			}
		})
	}
}

// runWithin has the children, but for those that are older, have as many pods as a quota allows, which are available at once.
func (w *world) runWithin(quota int32) {
	w.Helper()
	all := w.children()
	slices.SortFunc(all, func(a, b *child) int { return strings.Compare(a.subsetName(), b.subsetName()) })
	for _, c := range all {
		n, refused := min(c.replicas, quota), []corev1.ConditionStatus(nil)
		if quota -= n; n < c.replicas {
			refused = []corev1.ConditionStatus{corev1.ConditionTrue}
		}
		switch o := c.Object.(type) {
		case *kruise.CloneSet:
			o.Status = kruise.CloneSetStatus{ObservedGeneration: o.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n}
			for _, s := range refused {
				o.Status.Conditions = []kruise.CloneSetCondition{{Type: kruise.CloneSetConditionFailedScale, Status: s}}
			}
		case *kruise.StatefulSet:
			o.Status = kruise.StatefulSetStatus{ObservedGeneration: o.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n}
			for _, s := range refused {
				o.Status.Conditions = []kruise.WorkloadCondition{{Type: kruise.StatefulSetFailedCreatePod, Status: s}}
			}
		case *appsv1.StatefulSet:
			o.Status = appsv1.StatefulSetStatus{ObservedGeneration: o.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n}
		case *appsv1.Deployment:
			o.Status = appsv1.DeploymentStatus{ObservedGeneration: o.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n}
			for _, s := range refused {
				o.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: s, Message: "exceeded quota"}}
			}
		}
		if err := w.api.Status().Update(w.Context(), c.Object); err != nil {
			w.Fatal(err)
		}
	}
}

// Nodes are not watched. One that comes with the labels of a subset, and has no room, changes no pod: the subset is looked at by a
// timer, or the pods that stand in and have the room would stay indefinitely.
func TestASubsetThatSelectsNoNodeIsLookedAtAgain(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) { *d.Spec.Replicas = 9 })
	w.zoneNodes("a", "b", "c")
	w.settle(2 * time.Second)
	w.room["d"] = 0
	w.edit(func(d *kruise.UnitedDeployment) {
		d.Spec.Topology.Subsets[2].Name = "d"
		d.Spec.Topology.Subsets[2].NodeSelectorTerm.MatchExpressions[0].Values = []string{"later"}
	})
	w.settle(time.Minute)
	after := w.reconcile()
	if after <= 0 || after > time.Minute {
		t.Fatalf("it is looked at again after %s: %s", after, w.places())
	}
	w.zoneNodes("later")
	w.now = w.now.Add(after)
	w.reconcile()
	if got := w.counts(); got != "a=3 b=3 c=1 d=3" {
		t.Errorf("the subsets have %s, want a=3 b=3 c=1 d=3: %s", got, w.places())
	}
}

// A StatefulSet that is to go is scaled in from its highest ordinal: pods that are not ready do not stay in place of ready ones.
func TestAStatefulSetThatStandsInKeepsReadyPods(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) {
		*d.Spec.Replicas = 9
		d.Spec.Template = kruise.SubsetTemplate{AdvancedStatefulSetTemplate: &kruise.AdvancedStatefulSetTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: kruise.StatefulSetSpec{Template: pods("nginx:1")},
		}}
	})
	run := func(ready map[string]int32) {
		for _, c := range w.children() {
			set := c.Object.(*kruise.StatefulSet)
			n := min(ready[c.subsetName()], c.replicas)
			set.Status = kruise.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: c.replicas, ReadyReplicas: n, AvailableReplicas: n}
			if err := w.api.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
		w.reconcile()
	}
	w.reconcile()
	run(map[string]int32{"a": 3, "b": 3, "c": 3})
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[2].Name = "d" })
	w.reconcile()
	run(map[string]int32{"a": 3, "b": 3, "c": 2, "d": 2}) // c-0 is not ready, and d lacks one
	if got := w.counts(); got != "a=3 b=3 c=2 d=3" {
		t.Errorf("the subsets have %s, want a=3 b=3 c=2 d=3", got)
	}
	run(map[string]int32{"a": 3, "b": 3, "c": 1, "d": 2}) // c-1 is gone
	if got := w.counts(); got != "a=3 b=3 c=2 d=3" {
		t.Errorf("then the subsets have %s, want a=3 b=3 c=2 d=3", got)
	}
	run(map[string]int32{"a": 3, "b": 3, "c": 1, "d": 3})
	if got := w.counts(); got != "a=3 b=3 d=3" {
		t.Errorf("in the end the subsets have %s, want a=3 b=3 d=3", got)
	}
}

// Pods of a StatefulSet that are not ready, and stay since ready ones have higher ordinals, may have the room that new pods wait for.
func TestAStatefulSetThatStandsInGivesRoom(t *testing.T) {
	of := func(name string, replicas, ready int32) *child {
		return &child{kind: kind{GroupVersionKind: kruise.GroupVersion.WithKind(name)}, replicas: replicas, ready: ready, available: ready}
	}
	// within minReadySeconds are pods of it that are ready.
	within := func(c *child, pods int32) *child {
		c.ready += pods
		return c
	}
	for name, tc := range map[string]struct {
		surplus []*child
		keep    int32
		crowded bool
		want    []int32
	}{
		"it keeps its ready pods":                       {[]*child{of("StatefulSet", 10, 3)}, 4, false, []int32{10}},
		"it gives room":                                 {[]*child{of("StatefulSet", 10, 3)}, 4, true, []int32{4}},
		"it gives room already":                         {[]*child{of("StatefulSet", 10, 9)}, 4, true, []int32{5}},
		"once it has given it, it gives no more":        {[]*child{of("StatefulSet", 4, 2)}, 4, true, []int32{4}},
		"another one gives room, since it goes":         {[]*child{of("StatefulSet", 10, 3), of("CloneSet", 3, 0)}, 4, true, []int32{10, 0}},
		"another one gives room, since it is scaled in": {[]*child{of("StatefulSet", 10, 3), of("CloneSet", 3, 3)}, 4, true, []int32{10, 1}},
		"a CloneSet deletes pods that are not ready":    {[]*child{of("CloneSet", 10, 3)}, 4, true, []int32{4}},
		"no pod is lacking":                             {[]*child{of("StatefulSet", 10, 3)}, 0, true, []int32{0}},
		"pods within minReadySeconds stand in for none": {[]*child{within(of("CloneSet", 3, 0), 3), of("CloneSet", 3, 3)}, 3, false, []int32{3, 3}},
		"its available pods may have higher ordinals than those within minReadySeconds": {[]*child{within(of("StatefulSet", 5, 3), 2)}, 3, false, []int32{5}},
		"a CloneSet deletes pods within minReadySeconds first":                          {[]*child{within(of("CloneSet", 5, 3), 2)}, 3, false, []int32{3}},
	} {
		if got := replicasToKeep(tc.surplus, tc.keep, tc.crowded); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
