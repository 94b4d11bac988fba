// SPDX-License-Identifier: Apache-2.0

package launchpriority

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// world is a pod whose kubelet starts each container that it can.
type world struct {
	api  client.Client
	r    *Reconciler
	name types.NamespacedName

	events *record.FakeRecorder
}

func newWorld(priorities map[string]int64, objects ...client.Object) *world {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "new"}}
	for _, name := range slices.Sorted(maps.Keys(priorities)) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Env: []corev1.EnvVar{BarrierEnv("web", priorities[name])}})
	}
	c := fake.NewClientBuilder().WithObjects(append(objects, pod)...).WithStatusSubresource(pod).Build()
	events := record.NewFakeRecorder(10)
	return &world{api: c, r: &Reconciler{reconcile.Deps{Client: c, Live: c, Events: events, Now: time.Now}}, name: client.ObjectKeyFromObject(pod), events: events}
}

type tb interface {
	Helper()
	Fatal(...any)
}

func (w *world) pod(t tb) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := w.api.Get(context.Background(), w.name, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func (w *world) opened(t tb) map[string]string {
	t.Helper()
	barriers := &corev1.ConfigMap{}
	if err := w.api.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: "web-barrier"}, barriers); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return barriers.Data
}

func (w *world) reconcile(t tb) {
	t.Helper()
	if _, err := w.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: w.name}); err != nil {
		t.Fatal(err)
	}
}

// start has the kubelet start what it may, and makes those ready that are named.
func (w *world) start(t tb, ready ...string) {
	t.Helper()
	pod := w.pod(t)
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Ready: slices.Contains(ready, c.Name)})
	}
	if err := w.api.Status().Update(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
}

// versions are those of the pod and of its barriers.
func (w *world) versions(t tb) string {
	t.Helper()
	barriers := &corev1.ConfigMap{}
	if err := w.api.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: "web-barrier"}, barriers); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return w.pod(t).ResourceVersion + " " + barriers.ResourceVersion
}

// end has containers of a pod that is not started again end with exit codes, and others run.
func (w *world) end(t tb, codes map[string]int32, running ...string) {
	t.Helper()
	pod := w.pod(t)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	if err := w.api.Update(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		st := corev1.ContainerStatus{Name: c.Name, Ready: slices.Contains(running, c.Name)}
		if code, ended := codes[c.Name]; ended {
			st.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, st)
	}
	if err := w.api.Status().Update(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
}

func (w *world) keys(t tb) string { return strings.Join(slices.Sorted(maps.Keys(w.opened(t))), " ") }

func TestBarriersOpenOneAfterTheOther(t *testing.T) {
	w := newWorld(map[string]int64{"proxy": 1, "main": 0, "logs": 0, "last": -1})
	w.reconcile(t)
	if got := w.keys(t); got != "p_1" {
		t.Errorf("at first %s are open", got)
	}
	w.start(t)
	w.reconcile(t)
	if got := w.keys(t); got != "p_1" {
		t.Errorf("before the proxy is ready %s are open", got)
	}
	w.start(t, "proxy")
	w.reconcile(t)
	w.start(t, "proxy", "main")
	w.reconcile(t)
	if got := w.keys(t); got != "p_0 p_1" || w.pod(t).Annotations[kruise.ContainerLaunchPriorityCompletedKey] != "" {
		t.Errorf("while one of a group is not ready %s are open", got)
	}
	w.start(t, "proxy", "main", "logs")
	w.reconcile(t)
	if got := w.keys(t); got != "p_-1 p_0 p_1" || w.pod(t).Annotations[kruise.ContainerLaunchPriorityCompletedKey] != "true" {
		t.Errorf("at the end %s are open, and the pod has %v", got, w.pod(t).Annotations)
	}
	barriers := &corev1.ConfigMap{}
	if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-barrier"}, barriers); err != nil {
		t.Fatal(err)
	}
	if o := barriers.OwnerReferences; len(o) != 1 || o[0].UID != "new" || o[0].Controller != nil {
		t.Errorf("the owners are %+v", o)
	}
}

func TestAContainerThatHasEndedLetsTheNextStart(t *testing.T) {
	w := newWorld(map[string]int64{"prepare": 1, "main": 0})
	w.reconcile(t)
	w.end(t, map[string]int32{"prepare": 0})
	w.reconcile(t)
	if got := w.keys(t); got != "p_0 p_1" || w.pod(t).Annotations[kruise.ContainerLaunchPriorityCompletedKey] != "true" {
		t.Errorf("%s are open, and the pod has %v", got, w.pod(t).Annotations)
	}
}

// A ConfigMap that another client deletes is made again: no event reports it.
func TestBarriersThatAreDeletedAreMadeAgain(t *testing.T) {
	w := newWorld(map[string]int64{"prepare": 1, "main": 0})
	for range 2 {
		result, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.name})
		if err != nil || result.RequeueAfter != lookAgain || w.keys(t) != "p_1" {
			t.Fatalf("%s are open, and it is looked at again after %s: %v", w.keys(t), result.RequeueAfter, err)
		}
		if err := w.api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-barrier"}}); err != nil {
			t.Fatal(err)
		}
	}
}

// What waits for a container that never becomes ready says so. A pod of which nothing else runs has failed: it would wait indefinitely.
func TestAContainerThatHasFailedBlocksTheNext(t *testing.T) {
	w := newWorld(map[string]int64{"prepare": 1, "proxy": 1, "main": 0})
	w.reconcile(t)
	w.end(t, map[string]int32{"prepare": 3}, "proxy")
	w.reconcile(t)
	w.reconcile(t)
	pod := w.pod(t)
	const message = "Container prepare has ended with exit code 3 and is not started again, so containers of lower launch priorities do not start: main."
	if c := conditionOf(pod); c == nil || c.Status != corev1.ConditionTrue || c.Reason != ContainerFailedReason || c.Message != message {
		t.Errorf("the condition is %+v", c)
	}
	if w.keys(t) != "p_1" || pod.Status.Phase != "" || len(w.events.Events) != 1 {
		t.Errorf("open are %s, the phase is %q, and there are %d events", w.keys(t), pod.Status.Phase, len(w.events.Events))
	}
	w.end(t, map[string]int32{"prepare": 3, "proxy": 0})
	w.reconcile(t)
	if pod := w.pod(t); pod.Status.Phase != corev1.PodFailed || w.keys(t) != "p_1" {
		t.Errorf("at the end the phase is %q, and open are %s", pod.Status.Phase, w.keys(t))
	}
	w.reconcile(t)
	if len(w.events.Events) != 1 {
		t.Errorf("there are %d events", len(w.events.Events))
	}
}

// A rule of another container may restart all containers of a pod.
func TestABlockedPodThatGoesOnSaysSo(t *testing.T) {
	w := newWorld(map[string]int64{"prepare": 1, "proxy": 1, "main": 0})
	w.reconcile(t)
	w.end(t, map[string]int32{"prepare": 3}, "proxy")
	w.reconcile(t)
	w.start(t, "prepare")
	w.reconcile(t)
	if c := conditionOf(w.pod(t)); c == nil || c.Status != corev1.ConditionFalse || c.Message != "" {
		t.Errorf("the condition is %+v", c)
	}
}

// A pod of a StatefulSet has the name of one before it, whose ConfigMap may still be there.
func TestBarriersOfThePodBeforeDoNotCount(t *testing.T) {
	w := newWorld(map[string]int64{"proxy": 1, "main": 0}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-barrier", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "old"}}},
		Data:       map[string]string{"p_1": "true", "p_0": "true"},
	})
	w.reconcile(t)
	if got := w.keys(t); got != "p_1" {
		t.Errorf("%s are open", got)
	}
}

func TestPodsWithoutBarriersAreLeftAlone(t *testing.T) {
	w := newWorld(nil)
	w.reconcile(t)
	if w.opened(t) != nil || len(w.pod(t).Annotations) != 0 {
		t.Error("it was written to")
	}
}

// Whatever order the containers become ready in, and unready again, none may start before all of a higher priority were ready once,
// no barrier is shut again, and nothing is written once the pod says that they are open.
func TestNoBarrierOpensTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		priorities := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.OneOf(rapid.Int64Range(-2, 2), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64 - 1, math.MaxInt64})), 1, 4).Draw(t, "priorities")
		w := newWorld(priorities)
		wasReady := map[string]bool{}
		for range 12 {
			completed := w.pod(t).Annotations[kruise.ContainerLaunchPriorityCompletedKey] == "true"
			before, versions := w.opened(t), w.versions(t)
			w.reconcile(t)
			open := w.opened(t)
			for barrier := range before {
				if open[barrier] != "true" {
					t.Fatalf("%s was open, and now there are %v", barrier, open)
				}
			}
			if now := w.versions(t); completed && now != versions {
				t.Fatalf("it is completed, and written to: %s, now %s", versions, now)
			}
			var ready []string
			for name, priority := range priorities {
				if open[barrierKey(priority)] != "true" {
					continue
				}
				for other, higher := range priorities {
					if higher > priority && !wasReady[other] {
						t.Fatalf("%s may start before %s was ready", name, other)
					}
				}
				if rapid.Bool().Draw(t, "ready") {
					ready = append(ready, name)
					wasReady[name] = true
				}
			}
			w.start(t, ready...)
		}
	})
}

// The condition goes with what it is about, also in the round that opens the last barrier.
func TestAPodWhoseLastBarrierOpensIsNotBlocked(t *testing.T) {
	w := newWorld(map[string]int64{"prepare": 1, "main": 0})
	w.reconcile(t)
	w.end(t, map[string]int32{"prepare": 3}, "other")
	pod := w.pod(t)
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "other"})
	if err := w.api.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	if c := conditionOf(w.pod(t)); c == nil || c.Status != corev1.ConditionTrue {
		t.Fatalf("the condition is %+v", c)
	}
	w.start(t, "prepare")
	w.reconcile(t)
	if c := conditionOf(w.pod(t)); c == nil || c.Status != corev1.ConditionFalse || w.keys(t) != "p_0 p_1" {
		t.Errorf("the condition is %+v, and open are %s", c, w.keys(t))
	}
}

// A pod whose ConfigMap another client deletes has not failed while a container runs whose barrier was open before.
func TestAPodHasNotFailedWhileAContainerRuns(t *testing.T) {
	w := newWorld(map[string]int64{"proxy": 2, "prepare": 1, "main": 0})
	w.reconcile(t)
	w.start(t, "proxy")
	w.reconcile(t)
	w.end(t, map[string]int32{"prepare": 3}, "proxy")
	if err := w.api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-barrier"}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.reconcile(t)
		pod := w.pod(t)
		if c := conditionOf(pod); pod.Status.Phase != "" || c == nil || !strings.HasSuffix(c.Message, "do not start: main.") {
			t.Errorf("the phase is %q, and the condition %+v", pod.Status.Phase, c)
		}
	}
}
