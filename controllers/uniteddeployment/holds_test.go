// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/bundle"
)

const freeze = "hold contains {\"reason\": \"Freeze\", \"message\": \"Nothing moves.\"} if input.workload.kind == \"UnitedDeployment\""

// holdRollouts has a rule of a user decide about rollouts, none if it is empty.
func (w *world) holdRollouts(rule string) {
	w.Helper()
	var set bundle.Set
	if rule != "" {
		b, err := bundle.FromFiles("rules", map[string]string{"x.rego": "package extend.rollout.x\n\n" + rule})
		if err != nil {
			w.Fatal(err)
		}
		set = bundle.Set{b}
	}
	if err := w.engine.ActivateBundles(w.Context(), set); err != nil {
		w.Fatal(err)
	}
}

// inOneSubset is a UnitedDeployment of a native template with two pods in subset a.
func inOneSubset(of func(pods corev1.PodTemplateSpec) kruise.SubsetTemplate) func(*kruise.UnitedDeployment) {
	return func(d *kruise.UnitedDeployment) {
		d.Spec.Replicas, d.Spec.Topology.Subsets = ptr.To[int32](2), d.Spec.Topology.Subsets[:1]
		d.Spec.Template = of(pods("nginx:1"))
	}
}

func ofStatefulSet(pods corev1.PodTemplateSpec) kruise.SubsetTemplate {
	return kruise.SubsetTemplate{StatefulSetTemplate: &kruise.StatefulSetTemplateSpec{Spec: appsv1.StatefulSetSpec{Template: pods}}}
}

func ofDeployment(pods corev1.PodTemplateSpec) kruise.SubsetTemplate {
	return kruise.SubsetTemplate{DeploymentTemplate: &kruise.DeploymentTemplateSpec{Spec: appsv1.DeploymentSpec{Template: pods}}}
}

// image is that of the template of the child of a subset, with its replicas.
func (w *world) image(subset string) string {
	w.Helper()
	c := w.child(subset)
	switch o := c.Object.(type) {
	case *appsv1.StatefulSet:
		return fmt.Sprint(o.Spec.Template.Spec.Containers[0].Image, " ", c.replicas)
	case *appsv1.Deployment:
		return fmt.Sprint(o.Spec.Template.Spec.Containers[0].Image, " ", c.replicas)
	case *kruise.CloneSet:
		return fmt.Sprint(o.Spec.Template.Spec.Containers[0].Image, " ", c.replicas)
	}
	return ""
}

func (w *world) heldBy() string {
	w.Helper()
	s := w.get().Status
	return reason(&s, kruise.UpdateHeld)
}

// The controllers of Kubernetes ask no policy, so that what is written into the template of a native child is asked about
// first. It scales meanwhile.
func TestTemplatesOfNativeChildrenAreHeld(t *testing.T) {
	for name, of := range map[string]func(corev1.PodTemplateSpec) kruise.SubsetTemplate{"a StatefulSet": ofStatefulSet, "a Deployment": ofDeployment} {
		for why, rule := range map[string]string{
			"a rule holds": freeze, "a rule fails": "hold contains {\"reason\": to_number(\"x\"), \"message\": \"m\"}",
		} {
			t.Run(name+", "+why, func(t *testing.T) {
				w := newWorld(t, inOneSubset(of))
				w.reconcile()
				w.holdRollouts(rule)
				w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Template = of(pods("nginx:2")) })
				w.reconcile()
				if got := w.image("a"); got != "nginx:1 2" || w.heldBy() == "" {
					t.Errorf("the child has %s, held by %q", got, w.heldBy())
				}
				w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To[int32](5) })
				w.reconcile()
				if got := w.image("a"); got != "nginx:1 5" {
					t.Errorf("the child has %s", got)
				}
				w.holdRollouts("")
				w.reconcile()
				if got := w.image("a"); got != "nginx:2 5" || w.heldBy() != "" {
					t.Errorf("the child has %s, held by %q", got, w.heldBy())
				}
			})
		}
	}
}

// A partition that is lowered has a native StatefulSet move pods, as a template does.
func TestAPartitionOfANativeChildIsHeld(t *testing.T) {
	w := newWorld(t, inOneSubset(ofStatefulSet))
	w.reconcile()
	partition := func(n int32) func(*kruise.UnitedDeployment) {
		return func(d *kruise.UnitedDeployment) {
			d.Spec.UpdateStrategy.ManualUpdate = &kruise.ManualUpdate{Partitions: map[string]int32{"a": n}}
		}
	}
	w.edit(partition(2))
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Template = ofStatefulSet(pods("nginx:2")) })
	w.reconcile()
	w.holdRollouts(freeze)
	w.edit(partition(0))
	w.reconcile()
	if got := w.child("a").partition; got != 2 || w.heldBy() != "Freeze" {
		t.Errorf("the partition is %d, held by %q", got, w.heldBy())
	}
	w.holdRollouts("")
	w.reconcile()
	if got := w.child("a").partition; got != 0 {
		t.Errorf("the partition is %d", got)
	}
}

// A subset that is new gets pods of the revision that the others have, and children of another kind stay.
func TestNewChildrenAreOfTheRevisionThatIsNotHeld(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) {
		inOneSubset(func(pods corev1.PodTemplateSpec) kruise.SubsetTemplate { return d.Spec.Template })(d)
	})
	w.reconcile()
	w.run()
	w.reconcile()
	w.holdRollouts(freeze)
	w.edit(func(d *kruise.UnitedDeployment) {
		d.Spec.Template.CloneSetTemplate.Spec.Template = pods("nginx:2")
		b := *d.Spec.Topology.Subsets[0].DeepCopy()
		b.Name = "b"
		d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets, b)
	})
	w.reconcile()
	if got := w.image("b"); !strings.HasPrefix(got, "nginx:1 ") || w.heldBy() != "Freeze" {
		t.Errorf("the new child has %s, held by %q", got, w.heldBy())
	}
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Template = ofDeployment(pods("nginx:3")) })
	w.reconcile()
	for _, c := range w.children() {
		if c.kind.isNative() || c.GetDeletionTimestamp() != nil {
			t.Errorf("there is a %s of subset %s", c.kind.Kind, c.subsetName())
		}
	}
	w.holdRollouts("")
	w.reconcile()
	if got := w.image("b"); !strings.HasPrefix(got, "nginx:3 ") {
		t.Errorf("the child has %s when nothing holds", got)
	}
}

// Pods that an update of a native StatefulSet does not reach are deleted only where nothing holds them.
func TestStuckPodsAreHeld(t *testing.T) {
	for name, tc := range map[string]struct{ rule, deleted string }{
		"nothing holds":           {"", "web-0 web-1"},
		"the whole is held":       {freeze, ""},
		"a rule fails":            {"hold contains {\"reason\": to_number(\"x\"), \"message\": \"m\"}", ""},
		"a zone is held":          {"hold contains {\"reason\": \"Zone\", \"message\": \"m\", \"where\": {\"zone\": \"z\"}}", "web-0"},
		"one pod is held by rank": {"hold contains {\"reason\": \"One\", \"message\": \"m\", \"pod\": pod.name} if {\n\tsome pod in input.pods\n\tpod.name == \"web-1\"\n}", "web-0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, inOneSubset(ofStatefulSet))
			w.reconcile()
			w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Template = ofStatefulSet(pods("nginx:2")) })
			w.reconcile()
			set := w.child("a").Object.(*appsv1.StatefulSet)
			set.Status.ObservedGeneration = set.Generation
			if err := w.api.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			for _, node := range []*corev1.Node{
				{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}, {ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "z"}}},
			} {
				if err := w.api.Create(t.Context(), node); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 2 {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint("pod-", i)), Labels: maps.Clone(set.Spec.Template.Labels),
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, statefulSets().GroupVersionKind)},
				}, Spec: set.Spec.Template.Spec, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
				pod.Labels[kruise.ControllerRevisionHashKey] = "of-before"
				pod.Spec.NodeName = fmt.Sprint("n", i)
				if err := w.api.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			w.holdRollouts(tc.rule)
			w.writes = nil
			w.reconcile()
			var deleted []string
			for _, text := range w.writes {
				if pod, ok := strings.CutPrefix(text, "delete "); ok {
					deleted = append(deleted, pod)
				}
			}
			slices.Sort(deleted)
			if got := strings.Join(deleted, " "); got != tc.deleted || (w.heldBy() == "") != (tc.rule == "") {
				t.Errorf("deleted are %q, want %q; held by %q", got, tc.deleted, w.heldBy())
			}
		})
	}
}
