// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/simulation/lives"
	_ "github.com/regatta-sh/regatta/test/proptest"
	"github.com/regatta-sh/regatta/test/rules"
)

// life is one of a UnitedDeployment: the controllers of its children, nodes and kubelets are drawn, its own is the real one, and each of
// its writes is held to what is held, and leaves as many ready pods as there are replicas, if there are that many.
type life struct {
	*world
	broken string
	story  []string
	// fails says that a write of the round fails.
	fails bool
}

func newLife(t *testing.T, w *world) *life {
	l := &life{world: w}
	judged := interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := l.write("create", o, l.judgeCreate); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			l.judgeReady(o, "scaled in")
			if err := l.write("update", o, l.judgeUpdate); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			l.judgeReady(o, "deleted")
			if err := l.write("delete", o, l.judgeDelete); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	w.r = New(reconcile.Deps{Client: judged, Live: w.api, Events: w.events, Engine: w.engine, Now: func() time.Time { return w.now }})
	w.r.writes = 1
	for _, zone := range []string{"a", "b", "c"} {
		if err := w.api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// write judges a write, and has it fail where it is to.
func (l *life) write(what string, o client.Object, judge func(simulation.ActiveHolds, client.Object) string) error {
	l.story = append(l.story, fmt.Sprintf("%s %T %s %s", what, o, o.GetName(), o.GetLabels()[kruise.SubsetNameKey]))
	if why := judge(simulation.HoldingOf(l.get()), o); why != "" && l.broken == "" {
		l.broken = fmt.Sprintf("%s %T %s of subset %s %s, though %v is held", what, o, o.GetName(), o.GetLabels()[kruise.SubsetNameKey], why, simulation.HoldingOf(l.get()))
	}
	if why := l.judgePlacement(what, o); why != "" && l.broken == "" {
		l.broken = fmt.Sprintf("%s %T %s of subset %s %s, though %v is held", what, o, o.GetName(), o.GetLabels()[kruise.SubsetNameKey], why, simulation.HoldingOf(l.get()))
	}
	if l.fails {
		l.fails = false
		return apierrors.NewConflict(corev1.Resource("objects"), o.GetName(), errors.New("another client wrote first"))
	}
	return nil
}

// judgeReady allows that a child which is to go loses ready pods only where pods of the subsets that stay are available in their place.
func (l *life) judgeReady(o client.Object, what string) {
	d := l.get()
	k, _ := kindOf(&d.Spec.Template)
	left, loses := int32(0), int32(0)
	for _, c := range l.children() {
		stays := c.kind.Kind == k.Kind && c.kind.Group == k.Group && slices.ContainsFunc(d.Spec.Topology.Subsets, func(s kruise.Subset) bool { return s.Name == c.subsetName() })
		switch {
		case stays && c.GetUID() == o.GetUID(): // its own replicas are another matter
			return
		case stays:
			left += c.available
		case c.GetUID() != o.GetUID():
			left += min(c.ready, c.replicas)
		case what == "scaled in":
			now := c.kind.read(o)
			left += min(c.ready, now.replicas)
			loses = min(c.ready, c.replicas) - min(c.ready, now.replicas)
		default:
			loses = min(c.ready, c.replicas)
		}
	}
	if loses > 0 && left < *d.Spec.Replicas && l.broken == "" {
		l.broken = fmt.Sprintf("%T %s of subset %s is %s and loses %d ready pods, where %d of %d are left", o, o.GetName(), o.GetLabels()[kruise.SubsetNameKey], what, loses, left, *d.Spec.Replicas)
	}
}

func imageOf(o client.Object) string { return podTemplateOf(o).Spec.Containers[0].Image }

// judgeCreate allows a child of another revision than the current one only where a new pod of its zone may be.
func (l *life) judgeCreate(h simulation.ActiveHolds, o client.Object) string {
	current := l.get().Status.CurrentRevision
	if podTemplateOf(o) == nil || current == "" || o.GetLabels()[kruise.ControllerRevisionHashKey] == current || len(l.children()) == 0 {
		return ""
	}
	if h.NewPod("", o.GetLabels()[kruise.SubsetNameKey]) {
		return "has the revision that is held"
	}
	return ""
}

// judgeUpdate allows another template of a native child, and a lower partition, only where none of its pods is held.
func (l *life) judgeUpdate(h simulation.ActiveHolds, o client.Object) string {
	if podTemplateOf(o) == nil {
		return ""
	}
	was := o.DeepCopyObject().(client.Object)
	if err := l.api.Get(l.Context(), client.ObjectKeyFromObject(o), was); err != nil {
		return err.Error()
	}
	subset := o.GetLabels()[kruise.SubsetNameKey]
	moves, lower := imageOf(o) != imageOf(was), false
	if now, ok := o.(*appsv1.StatefulSet); ok {
		from, to := partitionOf(was.(*appsv1.StatefulSet)), partitionOf(now)
		lower = to < min(from, *now.Spec.Replicas)
	}
	if _, ok := o.(*kruise.CloneSet); ok {
		return "" // its controller asks
	}
	old := func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image != imageOf(o) } // by a lower partition alone no others move
	if moves && (h.HoldsPod("", subset) || l.anyHeld(h, o)) || lower && slices.ContainsFunc(l.podsOf(o), func(p *corev1.Pod) bool {
		return old(p) && h.HoldsPod(p.Name, strings.TrimPrefix(p.Spec.NodeName, "node-"))
	}) {
		return fmt.Sprintf("gets %s in place of %s", imageOf(o), imageOf(was))
	}
	return ""
}

func partitionOf(set *appsv1.StatefulSet) int32 {
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		return 0
	}
	return ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate.Partition, 0)
}

// judgeDelete allows the deletion of a pod, and of a child that another kind replaces, only where none is held.
func (l *life) judgeDelete(h simulation.ActiveHolds, o client.Object) string {
	pod, ok := o.(*corev1.Pod)
	if ok {
		if h.HoldsPod(pod.Name, strings.TrimPrefix(pod.Spec.NodeName, "node-")) {
			return "is held"
		}
		return ""
	}
	k, _ := kindOf(&l.get().Spec.Template)
	wanted := slices.ContainsFunc(l.get().Spec.Topology.Subsets, func(s kruise.Subset) bool { return s.Name == o.GetLabels()[kruise.SubsetNameKey] })
	if podTemplateOf(o) != nil && wanted && fmt.Sprintf("%T", o) != fmt.Sprintf("%T", k.make()) && (h.AllPods() || l.anyHeld(h, o)) {
		return "is replaced"
	}
	return ""
}

// judgePlacement allows a child to be made or deleted, or to get another number of pods, only where no answer of placement/allocation
// holds its subset, and more pods only where none denies it. A subset that the spec does not have any more is in no answer by its name.
func (l *life) judgePlacement(what string, o client.Object) string {
	h, subset := simulation.HoldingOf(l.get()), o.GetLabels()[kruise.SubsetNameKey]
	if podTemplateOf(o) == nil {
		return ""
	}
	listed := slices.ContainsFunc(l.get().Spec.Topology.Subsets, func(s kruise.Subset) bool { return s.Name == subset })
	switch {
	case what == "create" && h.HoldsSubset(subset):
		// A subset that has no pods keeps none: its child may be made without any.
		replaces := slices.ContainsFunc(l.children(), func(c *child) bool { return c.subsetName() == subset })
		k, _ := kindOf(&l.get().Spec.Template)
		if h.HoldsPlacement() || replaces || k.read(o).replicas > 0 {
			return "is made"
		}
		return ""
	case what == "delete" && (h.HoldsPlacement() || listed && h.HoldsSubset(subset)):
		return "is deleted"
	case what != "update":
		return ""
	}
	for _, c := range l.children() {
		if c.GetUID() != o.GetUID() {
			continue
		}
		now := c.kind.read(o)
		if now.replicas != c.replicas && (h.HoldsPlacement() || listed && h.HoldsSubset(subset)) || now.replicas > c.replicas && h.DeniesSubset(subset) {
			return fmt.Sprintf("gets %d pods in place of %d", now.replicas, c.replicas)
		}
	}
	return ""
}

func (l *life) anyHeld(h simulation.ActiveHolds, o client.Object) bool {
	return slices.ContainsFunc(l.podsOf(o), func(p *corev1.Pod) bool { return h.HoldsPod(p.Name, strings.TrimPrefix(p.Spec.NodeName, "node-")) })
}

// podsOf are the pods that runChildren made.
func (l *life) podsOf(o client.Object) (out []*corev1.Pod) {
	list := &corev1.PodList{}
	if err := l.api.List(l.Context(), list, client.InNamespace("shop"), client.MatchingLabels{"child": o.GetName()}); err != nil {
		l.Fatal(err)
	}
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}

// runChildren does what the controllers of the children and the kubelets do: pods are made, deleted, and replaced by those of a new template
// beyond the partition, all at once.
func (l *life) runChildren(ready bool) {
	l.Helper()
	must := func(err error) {
		l.Helper()
		if err != nil {
			l.Fatal(err)
		}
	}
	live := map[string]bool{}
	for _, c := range l.children() {
		o := c.Object
		live[o.GetName()] = true
		template, partition := podTemplateOf(o), int32(0)
		owner := metav1.NewControllerRef(o, c.kind.GroupVersionKind)
		if set, ok := o.(*appsv1.StatefulSet); ok {
			partition = partitionOf(set)
		}
		if _, ok := o.(*appsv1.Deployment); ok {
			set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: o.GetName(), UID: "rs-" + o.GetUID(), OwnerReferences: []metav1.OwnerReference{*owner}}}
			if err := l.api.Create(l.Context(), set); !apierrors.IsAlreadyExists(err) {
				must(err)
			}
			owner = metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
		}
		have := map[string]*corev1.Pod{}
		for _, p := range l.podsOf(o) {
			n := podOrdinal(p.Name)
			if n >= int(c.replicas) || n >= int(partition) && p.Spec.Containers[0].Image != imageOf(o) {
				must(client.IgnoreNotFound(l.api.Delete(l.Context(), p)))
				continue
			}
			have[p.Name] = p
		}
		updated, available := int32(0), int32(0)
		if ready {
			available = c.replicas
		}
		for i := range c.replicas {
			name := fmt.Sprint(o.GetName(), "-", i)
			p := have[name]
			if p == nil {
				p = &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(fmt.Sprint(name, l.now.UnixNano())), Labels: maps.Clone(template.Labels), OwnerReferences: []metav1.OwnerReference{*owner}},
					Spec:       *template.Spec.DeepCopy(),
				}
				p.Labels["child"] = o.GetName()
				p.Spec.NodeName = "node-" + o.GetLabels()[kruise.SubsetNameKey]
				must(l.api.Create(l.Context(), p))
			}
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}}
			if ready {
				p.Status.Conditions[0].Status = corev1.ConditionTrue
			}
			must(l.api.Status().Update(l.Context(), p))
			if p.Spec.Containers[0].Image == imageOf(o) {
				updated++
			}
		}
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			o.Status = appsv1.StatefulSetStatus{ObservedGeneration: o.Generation, Replicas: c.replicas, ReadyReplicas: available, AvailableReplicas: available, UpdatedReplicas: updated}
		case *appsv1.Deployment:
			o.Status = appsv1.DeploymentStatus{ObservedGeneration: o.Generation, Replicas: c.replicas, ReadyReplicas: available, AvailableReplicas: available, UpdatedReplicas: updated}
		case *kruise.CloneSet:
			o.Status = kruise.CloneSetStatus{ObservedGeneration: o.Generation, Replicas: c.replicas, ReadyReplicas: available, AvailableReplicas: available, UpdatedReplicas: updated, UpdatedReadyReplicas: min(updated, available)}
		}
		must(l.api.Status().Update(l.Context(), o))
	}
	list := &corev1.PodList{}
	must(l.api.List(l.Context(), list))
	for i := range list.Items {
		if !live[list.Items[i].Labels["child"]] { // the garbage collector does
			must(l.api.Delete(l.Context(), &list.Items[i]))
		}
	}
}

func ofCloneSet(pods corev1.PodTemplateSpec) kruise.SubsetTemplate {
	out := kruise.SubsetTemplate{CloneSetTemplate: &kruise.CloneSetTemplateSpec{}}
	out.CloneSetTemplate.Spec.Template = pods
	return out
}

func makers() []func(corev1.PodTemplateSpec) kruise.SubsetTemplate {
	return []func(corev1.PodTemplateSpec) kruise.SubsetTemplate{ofStatefulSet, ofDeployment, ofCloneSet}
}

// user does something that users do, or has another hold be in force.
func (l *life) user(t *rapid.T, subsets []kruise.Subset) {
	switch act := rapid.SampledFrom([]string{"image", "image", "kind", "replicas", "partition", "subset", "hold", "hold", "release", "placement", "placement"}).Draw(t, "the user changes"); act {
	case "image":
		image := rapid.SampledFrom([]string{"nginx:1", "nginx:2", "nginx:3"}).Draw(t, "image")
		l.edit(func(d *kruise.UnitedDeployment) {
			k, _ := kindOf(&d.Spec.Template)
			k.pods(&d.Spec.Template).Spec.Containers[0].Image = image
		})
	case "kind":
		maker := rapid.SampledFrom(makers()).Draw(t, "kind")
		l.edit(func(d *kruise.UnitedDeployment) {
			k, _ := kindOf(&d.Spec.Template)
			d.Spec.Template = maker(*k.pods(&d.Spec.Template))
		})
	case "replicas":
		n := int32(rapid.IntRange(0, 6).Draw(t, "replicas"))
		l.edit(func(d *kruise.UnitedDeployment) { d.Spec.Replicas = &n })
	case "partition":
		n := int32(rapid.IntRange(0, 2).Draw(t, "partition"))
		l.edit(func(d *kruise.UnitedDeployment) {
			d.Spec.UpdateStrategy.ManualUpdate = &kruise.ManualUpdate{Partitions: map[string]int32{"a": n, "b": n}}
		})
	case "subset":
		n := rapid.IntRange(1, 3).Draw(t, "subsets")
		l.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets = subsets[:n] })
	case "placement":
		drawn := lives.DrawPlacement(t, "a", "b", "c")
		l.edit(func(d *kruise.UnitedDeployment) { d.Annotations = drawn })
	case "hold", "release":
		held := map[string]string{}
		if act == "hold" {
			key := rapid.SampledFrom([]string{simulation.HoldWhole, simulation.HoldZone, simulation.HoldPods, simulation.HoldEach, simulation.HoldFailing}).Draw(t, "hold")
			held[key] = map[string]string{
				simulation.HoldWhole: rapid.SampledFrom([]string{"Current", "Update"}).Draw(t, "new pods"), simulation.HoldZone: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"),
				simulation.HoldPods: l.drawPod(t), simulation.HoldEach: "All", simulation.HoldFailing: rapid.SampledFrom([]string{"Plan", "Rank"}).Draw(t, "point"),
			}[key]
		}
		l.edit(func(d *kruise.UnitedDeployment) { d.Annotations = held })
	}
}

func (l *life) drawPod(t *rapid.T) string {
	list := &corev1.PodList{}
	if err := l.api.List(l.Context(), list); err != nil {
		l.Fatal(err)
	}
	if len(list.Items) == 0 {
		return "none"
	}
	return list.Items[rapid.IntRange(0, len(list.Items)-1).Draw(t, "pod")].Name
}

// round reconciles, and fails if a hold was broken.
func (l *life) round(t *rapid.T) {
	_, err := l.r.Reconcile(l.Context(), reconcile.Request{NamespacedName: l.key})
	l.story = append(l.story, fmt.Sprintf("reconcile: %v", err))
	l.now = l.now.Add(time.Second)
	if l.broken != "" {
		t.Fatalf("%s\n  %s", l.broken, strings.Join(l.story, "\n  "))
	}
}

// Whatever users do, holds come and go and writes fail: no write of a UnitedDeployment's controller creates a child of a revision that is
// held, writes the template of a native child or replaces one while a pod of it is held, or deletes a pod that is. In the end all
// children are as they were asked for.
func TestAnyLifeOfAUnitedDeployment(t *testing.T) {
	e := rules.Engine(t, simulation.HoldRules, simulation.PlacementRules)
	rapid.Check(t, func(rt *rapid.T) {
		if rapid.IntRange(0, 3).Draw(rt, "one in four, since each takes as long as four of other kinds") != 0 {
			return
		}
		var subsets []kruise.Subset
		maker := rapid.SampledFrom(makers()).Draw(rt, "kind")
		l := newLife(t, newWorldOf(t, e, func(d *kruise.UnitedDeployment) {
			d.Spec.Replicas, d.Spec.Template, subsets = ptr.To[int32](4), maker(pods("nginx:1")), d.Spec.Topology.Subsets
			d.Spec.Topology.Subsets = subsets[:2]
		}))
		rt.Repeat(map[string]func(*rapid.T){
			"user":      func(rt *rapid.T) { l.user(rt, subsets) },
			"reconcile": l.round, "and again": l.round,
			"reconcile that may fail": func(rt *rapid.T) {
				l.fails = rapid.Bool().Draw(rt, "a write fails")
				l.round(rt)
				l.fails = false
			},
			"children": func(rt *rapid.T) { l.runChildren(rapid.Bool().Draw(rt, "ready")) },
			"all is well": func(rt *rapid.T) {
				for range 2 {
					l.round(rt)
					l.runChildren(true)
				}
			},
		})
		l.edit(func(d *kruise.UnitedDeployment) { d.Annotations = nil })
		for range 4 {
			l.round(rt)
			l.runChildren(true)
		}
		d := l.get()
		k, _ := kindOf(&d.Spec.Template)
		children := l.children()
		if len(children) != len(d.Spec.Topology.Subsets) {
			rt.Fatalf("in the end there are %d children of %d subsets\n  %s", len(children), len(d.Spec.Topology.Subsets), strings.Join(l.story, "\n  "))
		}
		for _, c := range children {
			if want := k.pods(&d.Spec.Template).Spec.Containers[0].Image; c.kind.Kind != k.Kind || imageOf(c.Object) != want {
				rt.Fatalf("in the end subset %s has a %s of %s, want a %s of %s\n  %s", c.subsetName(), c.kind.Kind, imageOf(c.Object), k.Kind, want, strings.Join(l.story, "\n  "))
			}
		}
	})
}
