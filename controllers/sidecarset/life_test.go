// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/engine"
	_ "github.com/regatta-sh/regatta/test/proptest"
	"github.com/regatta-sh/regatta/test/rules"
)

// life is one of a SidecarSet: users, the owners of pods and kubelets are drawn, its controller is the real one, and each of its writes
// is held to what is held.
type life struct {
	*world
	judged client.Client
	broken string
	story  []string
	// made counts the pods.
	made int
	// fails says that the next write of the controller fails.
	fails bool
}

func newLife(t *testing.T, e *engine.Engine, set *kruise.SidecarSet) *life {
	t.Helper()
	l := &life{world: newWorldOf(t, e, set, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank", Labels: map[string]string{corev1.LabelMetadataName: "bank"}}})}
	l.missed.Live = l.api
	l.judged = interceptor.NewClient(l.api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := l.write("updates", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := l.write("updates", o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := l.write("deletes", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, body client.Object, opts ...client.SubResourceCreateOption) error {
			if err := l.write("creates an "+sub+" of", o); err != nil {
				return err
			}
			return c.SubResource(sub).Create(ctx, o, body, opts...)
		},
	})
	l.restart()
	return l
}

// restart starts a controller that remembers nothing.
func (l *life) restart() {
	l.start(l.judged)
	for _, zone := range []string{"a", "b"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
		l.c.NodeEvents().Create(l.t.Context(), event.CreateEvent{Object: node, IsInInitialList: true}, &nowhere{})
	}
	l.story = append(l.story, "the controller starts")
}

// write judges a write to a pod, and has it fail where it is to.
func (l *life) write(what string, o client.Object) error {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	told := fmt.Sprintf("%s pod %s/%s in zone %s", what, pod.Namespace, pod.Name, zoneOf(pod))
	l.story = append(l.story, told+": "+imagesOf(pod))
	if h := simulation.HoldingOf(l.set("logs")); h.HoldsPod(pod.Name, zoneOf(pod)) && l.broken == "" {
		l.broken = fmt.Sprintf("%s, though %v is held", told, h)
	}
	if what == "updates" && client.ObjectKeyFromObject(pod).String() == l.spared && l.broken == "" && readyPod(pod) {
		l.broken = told + ", though its budget does not let it"
	}
	if l.fails {
		l.fails = false
		return apierrors.NewConflict(corev1.Resource("pods"), pod.Name, errors.New("another client wrote first"))
	}
	return nil
}

// readyPod reports whether a pod is ready: an update takes no other from its budget.
func readyPod(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func zoneOf(p *corev1.Pod) string { return strings.TrimPrefix(p.Spec.NodeName, "node-") }

func imagesOf(p *corev1.Pod) string {
	var out []string
	for i := range p.Spec.Containers {
		out = append(out, p.Spec.Containers[i].Image)
	}
	return strings.Join(out, " ")
}

// round reconciles, and fails if a hold was broken.
func (l *life) round(t *rapid.T) {
	_, err := l.c.Reconcile(l.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs"}})
	l.story = append(l.story, fmt.Sprintf("reconcile: %v", err))
	l.clock.Step(11 * time.Second)
	for _, p := range l.pods() {
		l.c.PodEvents().Create(l.t.Context(), event.CreateEvent{Object: p}, &nowhere{})
	}
	if l.broken != "" {
		t.Fatalf("%s\n  %s", l.broken, strings.Join(l.story, "\n  "))
	}
}

// createPod is what the owner of a pod does. The webhook of pods may not have answered.
func (l *life) createPod(answered bool, zone string) {
	l.made++
	given := []*kruise.SidecarSet{l.set("logs")}
	if !answered {
		given = nil
	}
	p := webs(l.t, 1, given...)[0].(*corev1.Pod)
	p.Name, p.UID, p.CreationTimestamp = fmt.Sprint("web-", l.made/2), types.UID(fmt.Sprint("u", l.made)), metav1.NewTime(l.clock.Now())
	if p.Labels["n"] = fmt.Sprint(l.made % 2); l.made%2 == 1 {
		p.Namespace = "bank" // of each two pods of one name
	}
	p.Spec.NodeName = "node-" + zone
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: ptr.To(true)}}
	if err := l.api.Create(l.t.Context(), p); err != nil {
		l.t.Fatal(err)
	}
}

// owner draws what the owners of pods do: there are at most eight.
func (l *life) owner(t *rapid.T) {
	pods := l.pods()
	if len(pods) > 0 && rapid.IntRange(0, 3).Draw(t, "a pod goes") == 0 {
		p := rapid.SampledFrom(pods).Draw(t, "pod")
		if err := l.api.Delete(l.t.Context(), p); err != nil {
			l.t.Fatal(err)
		}
		return
	}
	if len(pods) < 8 {
		l.createPod(rapid.IntRange(0, 2).Draw(t, "the webhook answers") > 0, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"))
	}
}

// kubelets run what the specs of some pods say. Some images get ready late.
func (l *life) kubelets(t *rapid.T) {
	l.world.broken = rapid.SampledFrom([][]string{nil, nil, {"logs:2"}, {"agent:2"}, {"web:1"}}).Draw(t, "images that do not get ready")
	var but []string
	for _, p := range l.pods() {
		if rapid.IntRange(0, 3).Draw(t, "the kubelet is late") == 0 {
			but = append(but, p.Name)
		}
	}
	l.run(but...)
}

// user draws what users do, or has another hold be in force.
func (l *life) user(t *rapid.T) {
	draw := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	switch act := draw("the user changes", "image", "image", "agent", "empty image", "strategy", "recreate", "hold", "hold", "release"); act {
	case "image":
		value := draw("image", "logs:1", "logs:2", "logs:3")
		l.edit("logs", image(value))
	case "agent":
		value := draw("agent", "agent:1", "agent:2")
		l.edit("logs", func(s *kruise.SidecarSet) { s.Spec.Containers[1].Image = value })
	case "empty image":
		value := draw("empty image", "empty", "empty:2")
		l.edit("logs", func(s *kruise.SidecarSet) { s.Spec.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage = value })
	case "strategy":
		strategy := kruise.SidecarSetUpdateStrategy{MaxUnavailable: ptr.To(intstr.FromInt(rapid.IntRange(1, 3).Draw(t, "maxUnavailable")))}
		strategy.Paused = draw("paused", "", "", "paused") != ""
		switch draw("bound", "", "partition", "selector") {
		case "partition":
			strategy.Partition = ptr.To(intstr.FromInt(rapid.IntRange(0, 3).Draw(t, "partition")))
		case "selector":
			strategy.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"n": "0"}}
		}
		l.edit("logs", func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy = strategy })
	case "recreate":
		l.annotate(kruise.SidecarSetRecreateMissedKey, draw("pods that lack their sidecars are evicted", "", "true"))
	default:
		l.release()
		if act == "hold" {
			l.hold(t)
		}
	}
}

// holdAnUpgrade has a hold come when pods run both containers of a pair, so that their resets are due: few histories get there by chance.
func (l *life) holdAnUpgrade(t *rapid.T) {
	l.release()
	l.world.broken = nil
	l.edit("logs", func(s *kruise.SidecarSet) {
		s.Spec.UpdateStrategy = kruise.SidecarSetUpdateStrategy{MaxUnavailable: ptr.To(intstr.FromInt(8))}
	})
	l.run()
	l.round(t)
	value := rapid.SampledFrom([]string{"logs:1", "logs:2", "logs:3"}).Draw(t, "image")
	l.edit("logs", image(value))
	l.round(t)
	l.hold(t)
	l.run()
	l.round(t)
}

// holdAnEviction has a hold come when a pod lacks the containers and is to be evicted.
func (l *life) holdAnEviction(t *rapid.T) {
	l.release()
	if len(l.pods()) < 8 {
		l.createPod(false, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"))
	}
	l.run()
	l.hold(t)
	l.annotate(kruise.SidecarSetRecreateMissedKey, "true")
	l.round(t)
	l.round(t)
}

func (l *life) hold(t *rapid.T) {
	key := rapid.SampledFrom([]string{simulation.HoldWhole, simulation.HoldZone, simulation.HoldPods, simulation.HoldEach, simulation.HoldFailing}).Draw(t, "hold")
	var names []string
	for _, p := range l.pods() {
		if key == simulation.HoldPods && !slices.Contains(names, p.Name) && rapid.Bool().Draw(t, "a pod") {
			names = append(names, p.Name)
		}
	}
	l.annotate(key, map[string]string{
		simulation.HoldWhole: "Current", simulation.HoldZone: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"), simulation.HoldPods: strings.Join(names, " "),
		simulation.HoldEach: "All", simulation.HoldFailing: rapid.SampledFrom([]string{"Plan", "Rank"}).Draw(t, "point"),
	}[key])
}

func (l *life) release() {
	for _, key := range []string{simulation.HoldWhole, simulation.HoldZone, simulation.HoldPods, simulation.HoldEach, simulation.HoldFailing} {
		l.annotate(key, "")
	}
}

// annotate gives the SidecarSet an annotation, or takes it off where the value is empty.
func (l *life) annotate(key, value string) {
	set := l.set("logs")
	if set.Annotations[key] == value {
		return
	}
	set.Annotations = maps.Clone(set.Annotations)
	if delete(set.Annotations, key); value != "" {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value)
	}
	if err := l.api.Update(l.t.Context(), set); err != nil {
		l.t.Fatal(err)
	}
	l.story = append(l.story, "the user sets "+key+"="+value)
}

// end has all that keeps pods from being updated go, and fails where one is not as it was asked for in the end.
func (l *life) end(t *rapid.T) {
	l.release()
	l.spared = ""
	l.annotate(kruise.SidecarSetRecreateMissedKey, "true")
	l.edit("logs", func(s *kruise.SidecarSet) {
		s.Spec.UpdateStrategy = kruise.SidecarSetUpdateStrategy{MaxUnavailable: ptr.To(intstr.FromInt(8))}
	})
	l.world.broken = nil
	for range 12 {
		l.run()
		l.round(t)
	}
	set := l.set("logs")
	hashes, err := podmeta.HashesOf(&set.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range l.pods() {
		if !isUpgradable(&memory{hashes: hashes}, set.Name, p) {
			continue
		}
		working := containerOf(p, podmeta.WorkingContainers(p)["shipper"])
		if working == nil || working.Image != set.Spec.Containers[0].Image || containerOf(p, "agent").Image != set.Spec.Containers[1].Image ||
			containerOf(p, otherOf("shipper", working.Name)).Image != set.Spec.Containers[0].UpgradeStrategy.HotUpgradeEmptyImage {
			t.Fatalf("in the end pod %s/%s has %s, and %v works, where %s and %s are wanted\n  %s", p.Namespace, p.Name, imagesOf(p), working,
				set.Spec.Containers[0].Image, set.Spec.Containers[1].Image, strings.Join(l.story, "\n  "))
		}
	}
}

// Whatever users do, holds come and go and writes fail: no write of a SidecarSet's controller updates or resets a container of a pod
// that is held, or evicts a pod that lacks the containers and is held. In the end all pods have the containers that were asked for.
func TestAnyLifeOfASidecarSet(t *testing.T) {
	e := rules.Engine(t, simulation.HoldRules)
	rapid.Check(t, func(rt *rapid.T) {
		if rapid.IntRange(0, 3).Draw(rt, "one in four, since each takes as long as four of other kinds") != 0 {
			return
		}
		l := newLife(t, e, hotLogs())
		for range rapid.IntRange(1, 5).Draw(rt, "pods") {
			l.createPod(true, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "zone"))
		}
		l.run()
		rt.Repeat(map[string]func(*rapid.T){
			"user": l.user, "a hot upgrade that is to end": l.holdAnUpgrade, "a pod that is to be evicted": l.holdAnEviction, "owner": l.owner, "kubelets": l.kubelets, "reconcile": l.round, "and again": l.round,
			"reconcile that may fail": func(rt *rapid.T) {
				l.fails = rapid.Bool().Draw(rt, "a write fails")
				l.round(rt)
				l.fails = false
			},
			"restart": func(*rapid.T) { l.restart() },
			"budget": func(rt *rapid.T) {
				l.spared = ""
				if pods := l.pods(); len(pods) > 0 && rapid.Bool().Draw(rt, "a budget is used up") {
					l.spared = client.ObjectKeyFromObject(pods[rapid.IntRange(0, len(pods)-1).Draw(rt, "of pod")]).String()
				}
				l.story = append(l.story, "a budget does not let be updated: "+l.spared)
			},
			"all is well": func(rt *rapid.T) {
				l.world.broken = nil
				for range 3 {
					l.run()
					l.round(rt)
				}
			},
		})
		l.end(rt)
	})
}
