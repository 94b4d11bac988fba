// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	points "github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// alone is a world without an API server, whose pod has the restart policy Never. there reports whether its node has an agent.
func alone(t *testing.T, there *bool) *world {
	t.Helper()
	w := &world{T: t, ns: "shop", now: time.Unix(1_800_000_000, 0), events: record.NewFakeRecorder(100)}
	w.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web", UID: "u"}, Spec: corev1.PodSpec{
		NodeName: "n", RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c0"}, {Name: "c1"}},
	}}
	for _, name := range []string{"c0", "c1"} {
		w.pod.Status.ContainerStatuses = append(w.pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, ContainerID: "containerd://" + name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	w.api = fakeclient.NewClientBuilder(apiserver.Scheme(t)).WithObjects(w.pod).WithStatusSubresource(&corev1.Pod{}, &kruise.ContainerRecreateRequest{}).Build()
	w.r = New(reconcile.Deps{Client: w.api, Live: w.api, Events: w.events, Engine: rules.Engine(t, ""), Now: func() time.Time { return w.now }},
		WithAgents(func(_ context.Context, node string) (bool, time.Duration, error) {
			if node != "n" {
				t.Errorf("asked about node %q", node)
			}
			return *there, 0, nil
		}))
	return w
}

func TestRequestsKnowContainersThatHaveEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		id   string // of the run of c0 that has ended
		code int32
		want kruise.ContainerRecreateRequestPhase
	}{
		"it was stopped, and is not started again":   {"containerd://c0", 137, failed},
		"it ended with success without a restart":    {"containerd://c0", 0, failed},
		"it was restarted, and ended with success":   {"containerd://c0-2", 0, succeeded},
		"it was restarted, and ended with a failure": {"containerd://c0-2", 1, failed},
	} {
		t.Run(name, func(t *testing.T) {
			there := true
			w := alone(t, &there)
			w.request(func(r *kruise.ContainerRecreateRequest) { r.CreationTimestamp = metav1.NewTime(w.now) })
			w.node(recreating, pending)
			w.setPod(func(s *corev1.PodStatus) {
				s.ContainerStatuses[0].ContainerID = tc.id
				s.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: tc.code}}
			})
			w.reconcile()
			states := w.get().Status.ContainerRecreateStates
			if states[0].Phase != tc.want || (states[0].Message == "") != (tc.want == succeeded) || states[1].Phase != pending {
				t.Errorf("the states are %+v, want %s", states, tc.want)
			}
		})
	}
}

// A request whose node agent is gone says so, and ends: nothing else would end it.
func TestARequestWhoseAgentIsGoneEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		deadline *int64
		back     bool
		ends     bool
	}{
		"without a deadline":    {ends: true},
		"with one of its user":  {deadline: ptr.To[int64](3600)},
		"and the agent is back": {back: true},
	} {
		t.Run(name, func(t *testing.T) {
			there := false
			w := alone(t, &there)
			w.request(func(r *kruise.ContainerRecreateRequest) {
				r.CreationTimestamp, r.Spec.ActiveDeadlineSeconds = metav1.NewTime(w.now), tc.deadline
			})
			w.node(pending, pending)
			if again := w.reconcile(); again == 0 || again > time.Minute {
				t.Errorf("it is looked at again after %s", again)
			}
			c := meta.FindStatusCondition(w.get().Status.Conditions, kruise.ContainerRecreateRequestHeld)
			if c == nil || c.Reason != AgentMissingReason || !strings.Contains(c.Message, "No node agent runs on node n") {
				t.Errorf("the condition is %+v", c)
			}
			w.permits(nil)
			there = tc.back
			w.now = w.now.Add(agentTime)
			w.reconcile()
			s := w.get().Status
			if (s.CompletionTime != nil) != tc.ends || tc.ends && s.Message != kruise.ContainerRecreateRequestNoResponseMessage {
				t.Errorf("the status is %+v", s)
			}
			if c := meta.FindStatusCondition(s.Conditions, kruise.ContainerRecreateRequestHeld); tc.back && c != nil {
				t.Errorf("with an agent again the condition is %+v", c)
			}
		})
	}
}

func TestARequestThatCannotBeReconciledSaysSo(t *testing.T) {
	there, broken := true, true
	w := alone(t, &there)
	WithBudgets(func(context.Context, *corev1.Pod) ([]points.Budget, error) {
		if broken {
			return nil, errors.New("no answer")
		}
		return nil, nil
	})(w.r)
	w.request(func(r *kruise.ContainerRecreateRequest) { r.CreationTimestamp = metav1.NewTime(w.now) })
	w.node(pending, pending)
	if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key("r")}); err == nil {
		t.Fatal("the budgets could be read")
	}
	if c := meta.FindStatusCondition(w.get().Status.Conditions, failure.ConditionType); c == nil || !strings.Contains(c.Message, "finding the budgets of pod shop/web: no answer") {
		t.Errorf("the condition is %+v", c)
	}
	broken = false
	w.reconcile()
	if c := meta.FindStatusCondition(w.get().Status.Conditions, failure.ConditionType); c != nil {
		t.Errorf("at the end the condition is %+v", c)
	}
}
