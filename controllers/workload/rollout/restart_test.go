// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// restarting is a cluster of which all pods of a workload are to restart.
type restarting struct {
	*kindCluster
	// restarts are the requests of each round, by node.
	restarts []string
}

func newRestarting(t *testing.T, rule string) *restarting {
	t.Helper()
	var set bundle.Set
	if rule != "" {
		b, err := bundle.FromFiles("rules", map[string]string{"p.rego": "package extend.rollout.rules\n\n" + rule})
		if err != nil {
			t.Fatal(err)
		}
		set = bundle.Set{b}
	}
	k := &restarting{kindCluster: newKindCluster(t, &nodeKind{nodes: []string{"n1", "n2", "n3"}}, set, logSet())}
	k.c.agents = func(context.Context, string) (bool, time.Duration, error) { return true, 0, nil }
	k.round()
	k.run()
	k.round()
	k.ask(k.now.Format(time.RFC3339))
	return k
}

// ask asks for a restart.
func (k *restarting) ask(at string) {
	k.t.Helper()
	k.edit(func(set *appsv1.DaemonSet) { set.Annotations = map[string]string{kruise.RestartInPlaceKey: at} })
}

func (k *restarting) edit(f func(*appsv1.DaemonSet)) {
	k.t.Helper()
	set := &appsv1.DaemonSet{}
	if err := k.api.Get(k.t.Context(), k.key, set); err != nil {
		k.t.Fatal(err)
	}
	f(set)
	if err := k.api.Update(k.t.Context(), set); err != nil {
		k.t.Fatal(err)
	}
}

// run has the containers of all pods run, since now where they did not.
func (k *restarting) run() {
	k.t.Helper()
	for _, p := range k.pods() {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(k.now)}}
		if len(p.Status.ContainerStatuses) == 0 {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(k.now)}}}}
		}
		if err := k.api.Status().Update(k.t.Context(), p); err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *restarting) requests() []kruise.ContainerRecreateRequest {
	k.t.Helper()
	list := &kruise.ContainerRecreateRequestList{}
	if err := k.api.List(k.t.Context(), list, client.MatchingLabels{kruise.RestartOfKey: "nodes"}); err != nil {
		k.t.Fatal(err)
	}
	return list.Items
}

// step reconciles, and has the node agents end what is under way.
func (k *restarting) step(phase kruise.ContainerRecreateRequestPhase) error {
	k.t.Helper()
	_, err := k.c.Reconcile(k.t.Context(), reconcile.Request{NamespacedName: k.key})
	var pods []string
	for _, o := range k.requests() {
		if o.Status.CompletionTime != nil {
			continue
		}
		pods = append(pods, strings.TrimPrefix(o.Spec.PodName, "log-"))
		now := metav1.NewTime(k.now)
		o.Status.Phase, o.Status.CompletionTime, o.Status.Message = phase, &now, "the runtime said no"
		if failed := k.api.Status().Update(k.t.Context(), &o); failed != nil {
			k.t.Fatal(failed)
		}
	}
	slices.Sort(pods)
	k.restarts = append(k.restarts, strings.Join(pods, "+"))
	k.now = k.now.Add(time.Minute)
	return err
}

func (k *restarting) workload() *appsv1.DaemonSet {
	k.t.Helper()
	set := &appsv1.DaemonSet{}
	if err := k.api.Get(k.t.Context(), k.key, set); err != nil {
		k.t.Fatal(err)
	}
	return set
}

func (k *restarting) asked() bool {
	k.t.Helper()
	set := &appsv1.DaemonSet{}
	if err := k.api.Get(k.t.Context(), k.key, set); err != nil {
		k.t.Fatal(err)
	}
	return set.Annotations[kruise.RestartInPlaceKey] != ""
}

func TestRestartInPlace(t *testing.T) {
	tests := map[string]struct {
		rule  string
		edit  func(*restarting)
		want  string // requests by round
		asked bool   // still, in the end
		err   string
	}{
		"one at a time, as maxUnavailable says": {want: "n1,n2,n3,,"},
		"in the order of a rule":                {rule: "rank := {pod.name: -1 | some pod in input.pods; pod.node == \"n2\"}\n", want: "n2,n1,n3,,"},
		"a rule holds all": {
			rule: "hold contains {\"reason\": \"Freeze\", \"message\": \"not now\"} if input.restart\n", want: ",,,,", asked: true,
		},
		"a pod that was started since is not restarted": {
			edit: func(k *restarting) {
				p := k.pods()[2]
				p.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(k.now.Add(time.Second))
				if err := k.api.Status().Update(k.t.Context(), p); err != nil {
					k.t.Fatal(err)
				}
			}, want: "n1,n2,,,",
		},
		"a pod that is not available uses up the bound": {
			edit: func(k *restarting) {
				p := k.pods()[0]
				p.Status.Conditions[0].Status = corev1.ConditionFalse
				p.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(k.now.Add(time.Second))
				if err := k.api.Status().Update(k.t.Context(), p); err != nil {
					k.t.Fatal(err)
				}
			}, want: ",,,,", asked: true,
		},
		"a container that has ended is not waited for": {
			edit: func(k *restarting) {
				p := k.pods()[0]
				p.Spec.RestartPolicy = corev1.RestartPolicyNever
				if err := k.api.Update(k.t.Context(), p); err != nil {
					k.t.Fatal(err)
				}
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
				if err := k.api.Status().Update(k.t.Context(), p); err != nil {
					k.t.Fatal(err)
				}
			}, want: "n2,n3,,,",
		},
		"a node without an agent": {
			edit: func(k *restarting) {
				k.c.agents = func(_ context.Context, node string) (bool, time.Duration, error) { return node != "n3", 0, nil }
			}, want: "n1,n2,,,", asked: true,
		},
		"node agents are off": {edit: func(k *restarting) { k.c.agents = nil }, want: ",,,,", asked: true},
		"it cannot be told whether there is a node agent": {
			edit: func(k *restarting) {
				k.c.agents = func(context.Context, string) (bool, time.Duration, error) { return false, 0, errors.New("no answer") }
			}, want: ",,,,", asked: true, err: "no answer",
		},
		"no pod may be unavailable": {
			edit: func(k *restarting) { k.c.kind.(*nodeKind).rigid = true }, want: ",,,,", asked: true,
			err: "no pod can restart in place while the update strategy's maxUnavailable is 0",
		},
		"not a time": {
			edit: func(k *restarting) { k.ask("now") }, want: ",,,,", asked: true,
			err: `metadata.annotations[rollout.regatta.sh/restart-in-place] is "now" and has to be a time such as`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := newRestarting(t, tc.rule)
			if tc.edit != nil {
				tc.edit(k)
			}
			var err error
			for range 5 {
				err = k.step(kruise.ContainerRecreateRequestCompleted)
			}
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("the error is %v, want %q", err, tc.err)
			}
			if got := strings.Join(k.restarts, ","); got != tc.want || k.asked() != tc.asked {
				t.Errorf("restarted are %s, want %s; still asked for: %t", got, tc.want, k.asked())
			}
			if left := k.requests(); !tc.asked && len(left) > 0 {
				t.Errorf("%d requests are left", len(left))
			}
		})
	}
}

// TestARestartThatFails holds that the error names a failure, that the pod is not restarted again and
// that the others go on: one that does not come back is unavailable, and uses up the bound.
func TestARestartThatFails(t *testing.T) {
	k := newRestarting(t, "")
	if err := k.step(kruise.ContainerRecreateRequestFailed); err != nil {
		t.Fatal(err)
	}
	err := k.step(kruise.ContainerRecreateRequestCompleted)
	if err == nil || !strings.Contains(err.Error(), "restarting pod log-n1 in place") || !strings.Contains(err.Error(), "the runtime said no") {
		t.Errorf("the error is %v", err)
	}
	if got := strings.Join(k.restarts, ","); got != "n1,n2" {
		t.Errorf("restarted are %s", got)
	}
}

// TestARequestThatTheCacheDoesNotShow holds that no second pod is restarted because of it.
func TestARequestThatTheCacheDoesNotShow(t *testing.T) {
	k := newRestarting(t, "")
	if err := k.step(""); err != nil {
		t.Fatal(err)
	}
	for _, o := range k.requests() { // as if it were not in the cache yet
		if err := k.api.Delete(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.step(""); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(k.restarts, ","); got != "n1," {
		t.Errorf("restarted are %s", got)
	}
	k.now = k.now.Add(time.Hour) // it never came, or a user has deleted it
	if err := k.step(""); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(k.restarts, ","); got != "n1,,n1" {
		t.Errorf("restarted are %s", got)
	}
}

// TestAnUpdateGoesBeforeARestart holds that pods which are to be replaced are not restarted
// first, and that those which were are not restarted again.
func TestAnUpdateGoesBeforeARestart(t *testing.T) {
	k := newRestarting(t, "")
	k.edit(func(set *appsv1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = "log:2" })
	for range 12 {
		k.round()
		k.run()
		if n := len(k.requests()); n > 0 {
			t.Fatalf("%d requests", n)
		}
	}
	for _, p := range k.pods() {
		if image(p) != "log:2" {
			t.Errorf("%s runs %s", p.Name, image(p))
		}
	}
	if k.asked() {
		t.Error("the restart is not complete")
	}
}

// TestARestartThatWaitsSaysSo holds that a restart which waits for what holds the update says so, once by an event, and that
// pods of the strategy OnDelete restart though they have not been updated.
func TestARestartThatWaitsSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		rule   string
		kind   func(*nodeKind)
		edited bool // the template is another one
		reason string
		want   string // restarts by round
	}{
		"paused":                            {kind: func(k *nodeKind) { k.paused = true }, reason: "RolloutPaused", want: ",,,"},
		"paused in the middle of an update": {kind: func(k *nodeKind) { k.paused = true }, edited: true, reason: "RolloutPaused", want: ",,,"},
		"frozen": {
			rule: "hold contains {\"reason\": \"Freeze\", \"message\": \"not now\"}\n", edited: true, reason: "Freeze", want: ",,,",
		},
		"on delete":                        {kind: func(k *nodeKind) { k.onDelete = true }, want: "n1,n2,n3,"},
		"on delete, with another template": {kind: func(k *nodeKind) { k.onDelete = true }, edited: true, want: "n1,n2,n3,"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRestarting(t, tc.rule)
			kind := k.c.kind.(*nodeKind)
			if tc.kind != nil {
				tc.kind(kind)
			}
			if tc.edited {
				k.edit(func(set *appsv1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = "log:2" })
			}
			events := record.NewFakeRecorder(100)
			k.c.Events = events
			for range 4 {
				if err := k.step(kruise.ContainerRecreateRequestCompleted); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(k.restarts, ","); got != tc.want {
				t.Errorf("restarted are %s, want %s", got, tc.want)
			}
			close(events.Events)
			told := 0
			for text := range events.Events {
				if strings.Contains(text, RestartHeldReason) {
					told++
				}
			}
			if tc.reason == "" {
				if told > 0 || k.asked() {
					t.Errorf("%d events tell that it waits; it is still asked for: %t", told, k.asked())
				}
				return
			}
			if c := kind.held; told != 1 || c == nil || c.Reason != tc.reason || !strings.Contains(c.Message, "The restart in place that was asked for at 1970-01-12T") {
				t.Errorf("%d events tell that it waits, and the condition is %+v", told, kind.held)
			}
		})
	}
}

// TestARestartAndARolloutShareMaxUnavailable holds that a rollout which begins while a pod is about to restart waits for it.
func TestARestartAndARolloutShareMaxUnavailable(t *testing.T) {
	for name, after := range map[string]func(*restarting){
		"the restart is still asked for": func(k *restarting) {
			k.edit(func(set *appsv1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = "log:2" })
		},
		"the user has taken the restart back": func(k *restarting) {
			k.edit(func(set *appsv1.DaemonSet) {
				set.Annotations, set.Spec.Template.Spec.Containers[0].Image = nil, "log:2"
			})
		},
		"the cache does not show the request": func(k *restarting) {
			for _, o := range k.requests() {
				if err := k.api.Delete(t.Context(), &o); err != nil {
					t.Fatal(err)
				}
			}
			k.edit(func(set *appsv1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = "log:2" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newRestarting(t, "")
			k.round() // asks for the restart of one pod, which is available still
			requests := k.requests()
			if len(requests) != 1 {
				t.Fatalf("%d requests", len(requests))
			}
			restarts := requests[0].Spec.PodName // moving this one as well costs nothing
			after(k)
			k.round()
			k.round()
			for _, p := range k.pods() {
				if p.Name != restarts && image(p) != "log:1" {
					t.Errorf("%s is moved while another pod restarts", p.Name)
				}
			}
		})
	}
}

// A request has a name that the API server takes, and that identifies its pod, however its pod is named.
func TestNamesOfRestarts(t *testing.T) {
	for _, name := range []string{"web-0", strings.Repeat("a", longestNamed-1) + ".b-0", strings.Repeat("a", 253)} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
		request := restartName("w", pod, time.Unix(0, 0))
		if errs := validation.IsDNS1123Subdomain(request); len(errs) > 0 {
			t.Errorf("%s: %v", request, errs)
		}
		if end := strings.LastIndex(request, restartInfix); !(&Facts{restarting: map[string]bool{request[:end]: true}}).IsRestarting(&facts.Pod{Pod: pod}) {
			t.Errorf("%s is not of %s", request, name)
		}
	}
}

// What is remembered of requests goes when the cache shows them, or in time, whatever has become of their pods.
func TestRequestsOfPodsThatAreGoneAreForgotten(t *testing.T) {
	k := newRestarting(t, "")
	if err := k.step(kruise.ContainerRecreateRequestSucceeded); err != nil {
		t.Fatal(err)
	}
	m := k.c.memoryOf(k.workload())
	m.requested["gone"+restartInfix+"1"] = k.now.Add(-2 * k.c.timeout)
	for range 4 {
		if err := k.step(kruise.ContainerRecreateRequestSucceeded); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.requested) > 0 {
		t.Errorf("remembered are %v", m.requested)
	}
}
