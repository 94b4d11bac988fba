// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/simulation/lives"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
	"github.com/regatta-sh/regatta/engine"
	_ "github.com/regatta-sh/regatta/test/proptest"
	"github.com/regatta-sh/regatta/test/rules"
)

// life is one of a WorkloadSpread: users, the controller of its workload, the scheduler and the webhook of pods are drawn, its own
// controller is the real one, and each of its writes is held to what is held of the workload.
type life struct {
	*world
	judged client.Client
	broken string
	story  []string
	// fails says that the next deletion of the controller fails.
	fails bool
}

func newLife(t *testing.T, e *engine.Engine) *life {
	t.Helper()
	l := &life{world: newWorldOf(t, e, func(s *kruise.WorkloadSpread) {
		s.Spec.ScheduleStrategy = kruise.WorkloadSpreadScheduleStrategy{
			Type: kruise.AdaptiveWorkloadSpreadScheduleStrategyType, Adaptive: &kruise.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](10)},
		}
	})}
	l.judged = interceptor.NewClient(l.api, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := l.judge(o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, body client.Object, opts ...client.SubResourceCreateOption) error {
			if err := l.judge(o); err != nil {
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
	l.r = New(reconcile.Deps{Client: l.judged, Events: l.events, Engine: l.engine, Rounds: l.rounds, Now: func() time.Time { return l.now }}, l.targets, l.book)
	l.r.writes = 1
	l.story = append(l.story, "the controller starts")
}

// judge judges the deletion of a pod, and has it fail where it is to.
func (l *life) judge(o client.Object) error {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	l.story = append(l.story, "deletes pod "+pod.Name)
	if h := simulation.HoldingOf(l.workload()); h.HoldsPod(pod.Name, strings.TrimPrefix(pod.Spec.NodeName, "node-")) && l.broken == "" {
		l.broken = fmt.Sprintf("deletes pod %s, though %v is held", pod.Name, h)
	}
	if l.fails {
		l.fails = false
		return apierrors.NewTooManyRequests("a budget is used up", 1)
	}
	return nil
}

func (l *life) workload() *kruise.CloneSet {
	set := &kruise.CloneSet{}
	if err := l.api.Get(l.Context(), l.key, set); err != nil {
		l.Fatal(err)
	}
	return set
}

func (l *life) pods() (out []*corev1.Pod) {
	list := &corev1.PodList{}
	if err := l.api.List(l.Context(), list); err != nil {
		l.Fatal(err)
	}
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}

// do ends the test where the cluster in memory fails.
func (l *life) do(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
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

// owner draws what the controller of the workload does: there are at most eight pods.
func (l *life) owner(t *rapid.T) {
	pods := l.pods()
	if len(pods) > 0 && rapid.IntRange(0, 3).Draw(t, "a pod goes") == 0 {
		l.do(l.api.Delete(l.Context(), rapid.SampledFrom(pods).Draw(t, "pod")))
		return
	}
	if len(pods) < 8 {
		l.create(t, 1, rapid.Bool().Draw(t, "it runs at once"))
	}
}

// create creates pods, which the webhook places. None goes to a subset that an answer of placement/subset holds or denies.
func (l *life) create(t *rapid.T, n int, run bool) {
	h := simulation.HoldingOf(l.get())
	for _, p := range l.world.create(n, run) {
		mark := spread.MarkOf(p)
		l.story = append(l.story, fmt.Sprintf("creates pod %s of %+v", p.Name, mark))
		if mark != nil && mark.Subset != "" && h.DeniesSubset(mark.Subset) {
			t.Fatalf("pod %s goes to subset %s, though %v is held\n  %s", p.Name, mark.Subset, h, strings.Join(l.story, "\n  "))
		}
	}
}

// place has other answers of placement/subset be in force, or none.
func (l *life) place(t *rapid.T) {
	drawn := lives.DrawPlacement(t, "a", "b")
	s := l.get()
	s.Annotations = drawn
	l.do(l.api.Update(l.Context(), s))
	l.story = append(l.story, fmt.Sprintf("placement is %v", drawn))
}

// scheduler draws what is found for pods that have no node: one, or none.
func (l *life) scheduler(t *rapid.T) {
	for _, p := range l.pods() {
		if p.Spec.NodeName != "" || !rapid.Bool().Draw(t, "it is tried") {
			continue
		}
		if rapid.IntRange(0, 3).Draw(t, "it fits") == 0 {
			p.Spec.NodeName = "node-" + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")
			l.do(l.api.Update(l.Context(), p))
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
		} else {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(l.now)}}
		}
		l.do(l.api.Status().Update(l.Context(), p))
	}
}

// user draws what users do.
func (l *life) user(t *rapid.T) {
	switch rapid.SampledFrom([]string{"limit", "seconds", "fixed", "replicas"}).Draw(t, "the user changes") {
	case "limit":
		n := rapid.IntRange(0, 4).Draw(t, "maxReplicas")
		l.change(func(s *kruise.WorkloadSpread) { s.Spec.Subsets[0].MaxReplicas = ptr.To(intstr.FromInt(n)) })
	case "seconds":
		n := int32(rapid.IntRange(1, 20).Draw(t, "rescheduleCriticalSeconds"))
		l.change(func(s *kruise.WorkloadSpread) { s.Spec.ScheduleStrategy.Adaptive.RescheduleCriticalSeconds = &n })
	case "fixed":
		typ := rapid.SampledFrom([]kruise.WorkloadSpreadScheduleStrategyType{kruise.FixedWorkloadSpreadScheduleStrategyType, kruise.AdaptiveWorkloadSpreadScheduleStrategyType}).Draw(t, "type")
		l.change(func(s *kruise.WorkloadSpread) { s.Spec.ScheduleStrategy.Type = typ })
	case "replicas":
		set := l.workload()
		set.Spec.Replicas = ptr.To(int32(rapid.IntRange(1, 10).Draw(t, "replicas")))
		l.do(l.api.Update(l.Context(), set))
	}
}

// hold has another hold of the workload be in force, or none.
func (l *life) hold(t *rapid.T) {
	held := map[string]string{}
	if rapid.IntRange(0, 3).Draw(t, "it is released") != 0 {
		held = l.drawHold(t)
	}
	set := l.workload()
	set.Annotations = held
	l.do(l.api.Update(l.Context(), set))
	l.story = append(l.story, fmt.Sprintf("held is %v", held))
}

func (l *life) drawHold(t *rapid.T) map[string]string {
	key := rapid.SampledFrom([]string{simulation.HoldWhole, simulation.HoldZone, simulation.HoldPods, simulation.HoldPods, simulation.HoldEach, simulation.HoldFailing}).Draw(t, "hold")
	var names []string
	for _, p := range l.pods() {
		if key == simulation.HoldPods && rapid.Bool().Draw(t, "a pod") {
			names = append(names, p.Name)
		}
	}
	return map[string]string{key: map[string]string{
		simulation.HoldWhole: rapid.SampledFrom([]string{"Current", "Update"}).Draw(t, "new pods"), simulation.HoldZone: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"),
		simulation.HoldPods: strings.Join(names, " "), simulation.HoldEach: "All", simulation.HoldFailing: rapid.SampledFrom([]string{"Plan", "Rank"}).Draw(t, "point"),
	}[key]}
}

func (l *life) change(edit func(*kruise.WorkloadSpread)) {
	s := l.get()
	edit(s)
	s.Generation++
	l.do(l.api.Update(l.Context(), s))
}

// end has all holds go, and fails where a pod is left that has found no node for too long.
func (l *life) end(t *rapid.T) {
	set := l.workload()
	set.Annotations = nil
	l.do(l.api.Update(l.Context(), set))
	l.change(func(s *kruise.WorkloadSpread) {
		s.Spec.ScheduleStrategy.Type = kruise.AdaptiveWorkloadSpreadScheduleStrategyType
	})
	critical := time.Duration(*l.get().Spec.ScheduleStrategy.Adaptive.RescheduleCriticalSeconds) * time.Second
	l.now = l.now.Add(critical + time.Second)
	for range 2 {
		l.round(t)
	}
	if left := slices.DeleteFunc(l.pods(), func(p *corev1.Pod) bool {
		is, _ := subset.IsUnschedulable(p, critical, l.now)
		mark := spread.MarkOf(p)
		return !is || mark == nil || mark.Subset != "a" // the last subset keeps its pods
	}); len(left) > 0 {
		t.Fatalf("in the end %d pods have found no node and are there, such as %s\n  %s", len(left), left[0].Name, strings.Join(l.story, "\n  "))
	}
}

// Whatever users do, holds of the workload come and go, and deletions fail: no pod that is held is deleted because it finds no node. In
// the end none is left that has found none for as long as the spread says.
func TestAnyLifeOfAWorkloadSpread(t *testing.T) {
	e := rules.Engine(t, simulation.HoldRules, simulation.PlacementRules)
	rapid.Check(t, func(rt *rapid.T) {
		if rapid.IntRange(0, 3).Draw(rt, "half of them, since each takes as long as two of other kinds") > 1 {
			return
		}
		l := newLife(t, e)
		l.create(rt, rapid.IntRange(1, 4).Draw(rt, "pods"), false)
		rt.Repeat(map[string]func(*rapid.T){
			"user": l.user, "hold": l.hold, "placement": l.place, "owner": l.owner, "owner again": l.owner, "scheduler": l.scheduler, "scheduler again": l.scheduler,
			"reconcile": l.round, "and again": l.round, "restart": func(*rapid.T) { l.restart() },
			"reconcile that may fail": func(rt *rapid.T) {
				l.fails = rapid.Bool().Draw(rt, "a deletion fails")
				l.round(rt)
				l.fails = false
			},
			"time": func(rt *rapid.T) {
				l.now = l.now.Add(time.Duration(rapid.SampledFrom([]int{5, 10, 20, 20, int(recoverAfter / time.Second)}).Draw(rt, "seconds")) * time.Second)
			},
		})
		l.end(rt)
	})
}
