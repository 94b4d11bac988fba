// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/restarts/permit"
)

const (
	pending    = kruise.ContainerRecreateRequestPending
	recreating = kruise.ContainerRecreateRequestRecreating
	succeeded  = kruise.ContainerRecreateRequestSucceeded
	failed     = kruise.ContainerRecreateRequestFailed
	completed  = kruise.ContainerRecreateRequestCompleted
)

func TestTheStateOfAContainer(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	first := &cri.Container{Name: "app", ID: "containerd://1", Running: true}
	next := &cri.Container{Name: "app", ID: "containerd://2", Restarts: 1, Running: true, StartedAt: now.Add(-4 * time.Second)}
	ready := []kruise.ContainerStatusSnapshot{{Name: "app", Ready: true, RestartCount: 1, ContainerID: "containerd://2"}}
	unready := []kruise.ContainerStatusSnapshot{{Name: "app", RestartCount: 1, ContainerID: "containerd://2"}}
	older := []kruise.ContainerStatusSnapshot{{Name: "app", Ready: true, ContainerID: "containerd://1"}}
	force := &kruise.ContainerRecreateRequestStrategy{ForceRecreate: true}
	for _, tc := range []struct {
		name     string
		before   *state
		run      *cri.Container
		snapshot []kruise.ContainerStatusSnapshot
		strategy *kruise.ContainerRecreateRequestStrategy
		permits  permit.Permits
		want     state
		wait     time.Duration
	}{
		{name: "the run of the request goes on", run: first, want: state{Phase: pending}},
		{name: "a failure stays", before: &state{Phase: failed, Message: "no"}, run: next, snapshot: ready, want: state{Phase: failed, Message: "no"}},
		{name: "a success stays", before: &state{Phase: succeeded, IsKilled: true}, run: first, want: state{Phase: succeeded, IsKilled: true}},
		{name: "a container that the node does not have waits", want: state{Phase: pending, Message: "not found container on Node"}},
		{name: "one that is found again says no more that it was not", before: &state{Phase: pending, Message: "not found container on Node"}, run: first, want: state{Phase: pending}},
		{name: "one that has exited comes again", run: &cri.Container{ID: "containerd://1", Exited: true}, want: state{Phase: recreating, IsKilled: true}},
		{name: "a new run is not ready", run: next, snapshot: unready, want: state{Phase: recreating, IsKilled: true}},
		{name: "a new run that the pod does not report yet", run: next, snapshot: older, want: state{Phase: recreating, IsKilled: true}},
		{name: "a new run is ready", run: next, snapshot: ready, want: state{Phase: succeeded}},
		{name: "a new run is ready for too short a time", run: next, snapshot: ready, strategy: &kruise.ContainerRecreateRequestStrategy{MinStartedSeconds: 10}, want: state{Phase: recreating, IsKilled: true}, wait: 6 * time.Second},
		{name: "a new run is ready for long enough", run: next, snapshot: ready, strategy: &kruise.ContainerRecreateRequestStrategy{MinStartedSeconds: 4}, want: state{Phase: succeeded}},
		{name: "force does not take a restart of its own for one", run: next, snapshot: ready, strategy: force, want: state{Phase: pending}},
		{name: "force goes on after the kill was written", before: &state{Phase: recreating, IsKilled: true}, run: next, snapshot: ready, strategy: force, want: state{Phase: succeeded, IsKilled: true}},
		{name: "force goes on after a kill that could not be written", run: next, snapshot: ready, strategy: force, permits: permit.Permits{"app": "containerd://1"}, want: state{Phase: succeeded, IsKilled: true}},
		{name: "force waits for the kill that is permitted", run: next, snapshot: ready, strategy: force, permits: permit.Permits{"app": "containerd://2"}, want: state{Phase: pending}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &kruise.ContainerRecreateRequest{}
			r.Spec.Strategy, r.Status.ContainerStatusSnapshot = tc.strategy, tc.snapshot
			r.Spec.Containers = []kruise.ContainerRecreateRequestContainer{{
				Name: "app", StatusContext: &kruise.ContainerRecreateRequestContainerContext{ContainerID: "containerd://1"},
			}}
			if tc.before != nil {
				tc.before.Name = "app"
				r.Status.ContainerRecreateStates = []state{*tc.before}
			}
			s := seen{request: r, containers: map[string]cri.Container{}, permits: tc.permits, now: now}
			if tc.run != nil {
				s.containers["app"] = *tc.run
			}
			tc.want.Name = "app"
			got, wait := s.nextStates()
			if diff := cmp.Diff([]state{tc.want}, got); diff != "" || wait != tc.wait {
				t.Errorf("again in %s, want %s (-want +got):\n%s", wait, tc.wait, diff)
			}
		})
	}
}

func TestOneRequestOfAPodIsWorkedOn(t *testing.T) {
	at := func(name string, second int, phase kruise.ContainerRecreateRequestPhase) *kruise.ContainerRecreateRequest {
		r := &kruise.ContainerRecreateRequest{}
		r.Name, r.CreationTimestamp, r.Status.Phase = name, metav1.Unix(int64(second), 0), phase
		return r
	}
	ended := at("ended", 1, recreating)
	ended.Status.CompletionTime = ptr.To(metav1.Unix(9, 0))
	deleted := at("deleted", 1, recreating)
	deleted.DeletionTimestamp = ptr.To(metav1.Unix(9, 0))
	for _, tc := range []struct {
		name     string
		requests []*kruise.ContainerRecreateRequest
		work     string
		waiting  []string
	}{
		{name: "none"},
		{name: "the oldest", requests: []*kruise.ContainerRecreateRequest{at("b", 2, ""), at("a", 1, "")}, work: "a", waiting: []string{"b"}},
		{name: "of one second, by name", requests: []*kruise.ContainerRecreateRequest{at("b", 1, ""), at("a", 1, "")}, work: "a", waiting: []string{"b"}},
		{name: "one that is begun first", requests: []*kruise.ContainerRecreateRequest{at("a", 1, ""), at("b", 2, recreating), at("c", 0, pending)}, work: "b", waiting: []string{"a"}},
		{name: "one that has waited first", requests: []*kruise.ContainerRecreateRequest{at("a", 1, ""), at("c", 2, pending)}, work: "c", waiting: []string{"a"}},
		{name: "none that has ended or goes", requests: []*kruise.ContainerRecreateRequest{at("d", 1, completed), at("f", 1, failed), ended, deleted}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			work, waiting := pickRequest(tc.requests)
			name, others := "", []string(nil)
			if work != nil {
				name = work.Name
			}
			for _, r := range waiting {
				others = append(others, r.Name)
			}
			if diff := cmp.Diff(tc.waiting, others); name != tc.work || diff != "" {
				t.Errorf("works on %q, want %q; waiting:\n%s", name, tc.work, diff)
			}
		})
	}
}

func TestAPodLeavesItsServicesFirst(t *testing.T) {
	for _, tc := range []struct {
		name    string
		seconds *int64
		begun   bool
		want    bool
	}{
		{"without a wait", nil, false, true},
		{"the manager has not begun", ptr.To[int64](5), false, false},
		{"the manager has begun", ptr.To[int64](5), true, true},
		{"a wait of nothing is begun too", ptr.To[int64](0), false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &kruise.ContainerRecreateRequest{}
			r.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: tc.seconds}
			if tc.begun {
				r.Status.Conditions = []metav1.Condition{{Type: kruise.ContainerRecreateRequestPreRecreateGrace}}
			}
			if got := isGraceStarted(r); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
