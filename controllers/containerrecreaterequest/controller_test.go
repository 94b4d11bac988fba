// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	points "github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// world is a namespace with a pod and a request for its containers c0 and c1.
type world struct {
	*testing.T
	api    client.Client
	r      *Reconciler
	events *record.FakeRecorder
	now    time.Time
	ns     string
	pod    *corev1.Pod
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.ns, Name: name}
}

func (w *world) request(edit func(*kruise.ContainerRecreateRequest)) {
	w.Helper()
	r := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "r", Labels: map[string]string{
		kruise.ContainerRecreateRequestPodUIDKey: string(w.pod.UID), kruise.ContainerRecreateRequestActiveKey: "true",
	}}}
	r.Spec.PodName = "web"
	r.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{}
	for _, name := range []string{"c0", "c1"} {
		r.Spec.Containers = append(r.Spec.Containers, kruise.ContainerRecreateRequestContainer{
			Name: name, StatusContext: &kruise.ContainerRecreateRequestContainerContext{ContainerID: "containerd://" + name},
		})
	}
	if edit != nil {
		edit(r)
	}
	if err := w.api.Create(w.Context(), r); err != nil {
		w.Fatal(err)
	}
}

// node does what the agent does: it writes phases of the containers.
func (w *world) node(phases ...kruise.ContainerRecreateRequestPhase) {
	w.Helper()
	r := w.get()
	before := r.DeepCopy()
	r.Status.Phase = kruise.ContainerRecreateRequestRecreating
	r.Status.ContainerRecreateStates = nil
	for i, phase := range phases {
		r.Status.ContainerRecreateStates = append(r.Status.ContainerRecreateStates, kruise.ContainerRecreateRequestContainerRecreateState{Name: fmt.Sprintf("c%d", i), Phase: phase})
	}
	if err := w.api.Status().Patch(w.Context(), r, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) get() *kruise.ContainerRecreateRequest {
	w.Helper()
	r := &kruise.ContainerRecreateRequest{}
	if err := w.api.Get(w.Context(), w.key("r"), r); err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) reconcile() time.Duration {
	w.Helper()
	var last time.Duration
	for range 3 {
		got, err := w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: w.key("r")})
		if err != nil {
			w.Fatal(err)
		}
		last = got.RequeueAfter
	}
	return last
}

func (w *world) permits(want permit.Permits) {
	w.Helper()
	got, err := permit.ReadPermits(w.get())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("permitted are %v, want %v (%v)", got, want, err)
	}
}

// setPod changes the status of the pod.
func (w *world) setPod(edit func(*corev1.PodStatus)) {
	w.Helper()
	edit(&w.pod.Status)
	if err := w.api.Status().Update(w.Context(), w.pod); err != nil {
		w.Fatal(err)
	}
}

func (w *world) ready() *corev1.PodCondition {
	w.Helper()
	if err := w.api.Get(w.Context(), w.key("web"), w.pod); err != nil {
		w.Fatal(err)
	}
	for i := range w.pod.Status.Conditions {
		if w.pod.Status.Conditions[i].Type == kruise.KruisePodReady {
			return &w.pod.Status.Conditions[i]
		}
	}
	return nil
}

const (
	pending    = kruise.ContainerRecreateRequestPending
	recreating = kruise.ContainerRecreateRequestRecreating
	succeeded  = kruise.ContainerRecreateRequestSucceeded
	failed     = kruise.ContainerRecreateRequestFailed
)

func TestTheController(t *testing.T) {
	_, api := apiserver.Serve(t)
	n := 0
	start := func(name string, f func(w *world), modules ...string) {
		t.Run(name, func(t *testing.T) {
			n++
			module := ""
			if len(modules) > 0 {
				module = "package extend.node.x\n\n" + modules[0]
			}
			e := rules.Engine(t, module)
			w := &world{T: t, api: api, events: record.NewFakeRecorder(20), ns: fmt.Sprintf("ns-%d", n), now: time.Now()}
			if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}); err != nil {
				t.Fatal(err)
			}
			w.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
			w.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}
			for _, c := range []string{"c0", "c1"} {
				w.pod.Spec.Containers = append(w.pod.Spec.Containers, corev1.Container{Name: c, Image: "i"})
			}
			if err := api.Create(t.Context(), w.pod); err != nil {
				t.Fatal(err)
			}
			w.setPod(func(s *corev1.PodStatus) {
				s.Conditions = []corev1.PodCondition{{Type: kruise.KruisePodReady, Status: corev1.ConditionTrue}}
			})
			w.r = New(reconcile.Deps{Client: api, Live: api, Events: w.events, Engine: e, Now: func() time.Time { return w.now }}, WithBudgets(func(context.Context, *corev1.Pod) ([]points.Budget, error) {
				return []points.Budget{{Name: "web", Allowed: 0}}, nil
			}))
			f(w)
		})
	}

	start("all containers that wait may be stopped", func(w *world) {
		w.request(nil)
		w.reconcile()
		w.permits(nil) // the node has not told how far they are
		w.node(pending, pending)
		if got := w.reconcile(); got != lookAgain {
			t.Errorf("again in %s", got)
		}
		w.permits(permit.Permits{"c0": "containerd://c0", "c1": "containerd://c1"})
	})

	start("in order, one after the other", func(w *world) {
		w.request(func(r *kruise.ContainerRecreateRequest) { r.Spec.Strategy.OrderedRecreate = true })
		w.node(pending, pending)
		w.reconcile()
		w.permits(permit.Permits{"c0": "containerd://c0"})
		w.node(recreating, pending)
		w.reconcile()
		w.permits(permit.Permits{"c0": "containerd://c0"})
		w.node(succeeded, pending)
		w.reconcile()
		w.permits(permit.Permits{"c0": "containerd://c0", "c1": "containerd://c1"})
	})

	start("by force, the current run is stopped", func(w *world) {
		w.request(func(r *kruise.ContainerRecreateRequest) { r.Spec.Strategy.ForceRecreate = true })
		w.setPod(func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c0", ContainerID: "containerd://again"}}
		})
		w.node(pending, pending)
		w.reconcile()
		w.permits(permit.Permits{"c0": "containerd://again", "c1": "containerd://c1"})
	})

	for clock, off := range map[string]time.Duration{"ahead": time.Minute, "behind": -time.Minute} {
		start("new runs are reported to a node whose clock is "+clock, func(w *world) {
			w.request(nil)
			w.node(recreating, pending)
			w.setPod(func(s *corev1.PodStatus) {
				running := func(at time.Time) corev1.ContainerState {
					return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at.Add(off))}}
				}
				s.ContainerStatuses = []corev1.ContainerStatus{
					{Name: "c0", ContainerID: "containerd://new", Ready: true, RestartCount: 1, State: running(time.Now())},
					{Name: "c1", ContainerID: "containerd://c1", Ready: true, State: running(time.Now().Add(-time.Hour))},
				}
			})
			w.reconcile()
			got := w.get().Status.ContainerStatusSnapshot
			if want := (kruise.ContainerStatusSnapshot{Name: "c0", Ready: true, RestartCount: 1, ContainerID: "containerd://new"}); len(got) != 1 || got[0] != want {
				t.Errorf("got %v", got)
			}
		})
	}

	start("a policy holds, says why once, and lets go", func(w *world) {
		w.request(nil)
		w.node(pending, pending)
		w.reconcile()
		w.permits(nil)
		c := meta.FindStatusCondition(w.get().Status.Conditions, kruise.ContainerRecreateRequestHeld)
		if c == nil || c.Reason != "UsedUp" || c.Message != "web allows no more. (rule extend.node.x)" {
			t.Errorf("got %v", c)
		}
		if len(w.events.Events) != 1 {
			t.Errorf("%d events", len(w.events.Events))
		}
		w.r.budgets = nil
		w.reconcile()
		w.permits(permit.Permits{"c0": "containerd://c0", "c1": "containerd://c1"})
		if meta.FindStatusCondition(w.get().Status.Conditions, kruise.ContainerRecreateRequestHeld) != nil {
			t.Error("it still says that it is held")
		}
	}, `hold contains {"reason": "UsedUp", "message": sprintf("%s allows no more.", [b.name])} if { some b in input.budgets; b.allowed < 1 }`)

	start("a policy denies one container", func(w *world) {
		w.request(func(r *kruise.ContainerRecreateRequest) {
			r.Spec.Strategy.FailurePolicy = kruise.ContainerRecreateRequestFailurePolicyIgnore
		})
		w.node(pending, pending)
		w.reconcile()
		states := w.get().Status.ContainerRecreateStates
		if states[0].Phase != failed || states[0].Message != "c0 runs on. (rule extend.node.x)" || states[1].Phase != pending {
			t.Errorf("got %v", states)
		}
		w.permits(permit.Permits{"c1": "containerd://c1"})
	}, `deny contains {"reason": "Kept", "message": "c0 runs on.", "container": "c0"}`)

	start("nothing is permitted before the pod has left its services", func(w *world) {
		w.request(func(r *kruise.ContainerRecreateRequest) {
			r.Spec.Strategy.UnreadyGracePeriodSeconds = ptr.To[int64](30)
		})
		w.node(pending, pending) // by an agent whose clock says that it is time
		if got := w.reconcile(); got != lookAgain {
			t.Errorf("again in %s", got)
		}
		w.permits(nil)
		grace := meta.FindStatusCondition(w.get().Status.Conditions, kruise.ContainerRecreateRequestPreRecreateGrace)
		w.now = grace.LastTransitionTime.Add(29 * time.Second)
		if got := w.reconcile(); got != time.Second {
			t.Errorf("again in %s", got)
		}
		w.permits(nil)
		w.now = w.now.Add(time.Second)
		w.reconcile()
		w.permits(permit.Permits{"c0": "containerd://c0", "c1": "containerd://c1"})
	})

	start("the pod leaves its services and comes back", func(w *world) {
		w.request(func(r *kruise.ContainerRecreateRequest) {
			r.Spec.Strategy.UnreadyGracePeriodSeconds, r.Spec.TTLSecondsAfterFinished = ptr.To[int64](3), ptr.To[int32](60)
		})
		w.node()
		w.reconcile()
		var keys []kruise.PodReadinessMessage
		c := w.ready()
		if err := json.Unmarshal([]byte(c.Message), &keys); err != nil || c.Status != corev1.ConditionFalse || len(keys) != 1 || keys[0] != (kruise.PodReadinessMessage{UserAgent: "ContainerRecreateRequest", Key: w.ns + "/r"}) {
			t.Fatalf("got %v, %v", c, err)
		}
		r := w.get()
		grace := meta.FindStatusCondition(r.Status.Conditions, kruise.ContainerRecreateRequestPreRecreateGrace)
		if grace == nil || len(r.Finalizers) != 1 {
			t.Fatalf("got %v, %v", grace, r.Finalizers)
		}
		w.now = w.now.Add(time.Hour)
		w.reconcile()
		if again := meta.FindStatusCondition(w.get().Status.Conditions, kruise.ContainerRecreateRequestPreRecreateGrace); !again.LastTransitionTime.Equal(&grace.LastTransitionTime) {
			t.Errorf("the time moved from %s to %s", grace.LastTransitionTime, again.LastTransitionTime)
		}
		r = w.get()
		before := r.DeepCopy()
		r.Status.Phase, r.Status.CompletionTime = kruise.ContainerRecreateRequestCompleted, ptr.To(metav1.NewTime(w.now))
		if err := api.Status().Patch(t.Context(), r, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		if left := w.reconcile(); left <= 0 || left > time.Minute {
			t.Errorf("again in %s", left)
		}
		r = w.get()
		if _, active := r.Labels[kruise.ContainerRecreateRequestActiveKey]; active || len(r.Finalizers) > 0 || w.ready().Status != corev1.ConditionTrue {
			t.Errorf("not released: %v, %v, %v", r.Labels, r.Finalizers, w.ready())
		}
		w.now = w.now.Add(2 * time.Minute)
		w.reconcile()
		if err := api.Get(t.Context(), w.key("r"), r); !apierrors.IsNotFound(err) {
			t.Errorf("it is still there: %v", err)
		}
	})

	for name, tc := range map[string]struct {
		edit    func(*kruise.ContainerRecreateRequest)
		phases  []kruise.ContainerRecreateRequestPhase
		later   time.Duration
		gone    bool
		message string
		states  string
	}{
		"a request that no agent answers":  {later: 61 * time.Second, message: "daemon has not responded for a long time", states: "Failed Failed"},
		"a request at its deadline":        {edit: func(r *kruise.ContainerRecreateRequest) { r.Spec.ActiveDeadlineSeconds = ptr.To[int64](30) }, phases: []kruise.ContainerRecreateRequestPhase{succeeded, recreating}, later: 31 * time.Second, message: "recreating has exceeded the activeDeadlineSeconds", states: "Succeeded Failed"},
		"a request whose pod is gone":      {phases: []kruise.ContainerRecreateRequestPhase{pending, pending}, gone: true, message: "pod has gone", states: "Failed Failed"},
		"a request for a pod of that name": {edit: func(r *kruise.ContainerRecreateRequest) { r.Labels[kruise.ContainerRecreateRequestPodUIDKey] = "x" }, message: "pod has gone", states: "Failed Failed"},
	} {
		start(name, func(w *world) {
			w.request(tc.edit)
			if tc.phases != nil {
				w.node(tc.phases...)
			}
			if tc.gone {
				if err := api.Delete(t.Context(), w.pod, client.GracePeriodSeconds(0)); err != nil {
					t.Fatal(err)
				}
			}
			w.now = w.now.Add(tc.later)
			w.reconcile()
			s := w.get().Status
			var states []string
			for _, c := range s.ContainerRecreateStates {
				states = append(states, string(c.Phase))
			}
			if s.Phase != kruise.ContainerRecreateRequestCompleted || s.CompletionTime == nil || s.Message != tc.message || strings.Join(states, " ") != tc.states {
				t.Errorf("got %+v", s)
			}
		})
	}

	start("a request that an earlier release did not act on", func(w *world) {
		w.request(nil)
		r := w.get()
		before := r.DeepCopy()
		r.Status.Phase = pending
		r.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "NotImplemented", LastTransitionTime: metav1.Now()}}
		if err := api.Status().Patch(t.Context(), r, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		if s := w.get().Status; s.Phase == kruise.ContainerRecreateRequestCompleted {
			t.Errorf("got %+v", s)
		}
	})
}
