// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

// resizing has a pod wait for resources that its last update wrote.
func resizing(p *corev1.Pod, reason, message string) {
	p.ResourceVersion += "1"
	p.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: `{"revision":"web-new","updateResources":true}`}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, Message: message})
}

func TestAPodThatItsNodeDoesNotResizeIsTold(t *testing.T) {
	e := rules.Engine(t, "")
	r, f := testRound(e, 4, 2, func(_ *Facts, pods []*corev1.Pod) {
		resizing(pods[0], corev1.PodReasonInfeasible, "Node didn't have enough capacity:\ncpu")
		resizing(pods[1], corev1.PodReasonDeferred, "Node didn't have enough resource: cpu")
	})
	events := record.NewFakeRecorder(10)
	r.c.Events = events
	res := Result{Decisions: Decisions{Looked: true}}
	res.Stuck = r.findStuck(f, res)
	const want = "pod web-0 is not updated: its node cannot give it its new resources (Infeasible): Node didn't have enough capacity:\ncpu; and 1 more"
	if got := res.FailedPhases(); len(got) != 1 || got[0].Phase != PhaseUpdate || got[0].Error() != want || res.PhaseSucceeded(PhaseUpdate) || !res.PhaseSucceeded(PhaseScale) {
		t.Errorf("the failures are %v", got)
	}
	if a, _ := newRound(e, f, res, nil).ExplainPod("shop", "web-1"); !strings.Contains(a.Message, "now (Deferred): Node didn't have enough resource: cpu.") {
		t.Errorf("the explanation is %+v", a)
	}
	if res.Err != nil {
		t.Error("the round is repeated, though the kubelet is who has to act")
	}
	first, second := <-events.Events, <-events.Events
	if first != "Warning FailedUpdatePodInPlace failed to update pod web-0 in-place(revision web-new): its node cannot give it its new resources (Infeasible): Node didn't have enough capacity:; cpu" ||
		!strings.Contains(second, "pod web-1") {
		t.Errorf("the events are %q, %q", first, second)
	}
	r.findStuck(f, res)
	if n := len(events.Events); n != 0 {
		t.Errorf("%d events say the same again", n)
	}

	// The first is updated to another revision in this round, the second is deferred for another reason.
	written := f.Pods[1].DeepCopy()
	resizing(written, "", "")
	written.Status.Conditions[1].Message = "Node didn't have enough resource: memory"
	f = r.updateFacts(f, []*corev1.Pod{written})
	res.Moved = []types.NamespacedName{{Namespace: "shop", Name: "web-0"}}
	if got := r.findStuck(f, res); len(got) != 1 || got[0].Pod != "web-1" || len(events.Events) != 1 || len(r.memory.stuck) != 1 {
		t.Errorf("stuck are %v, with %d events", got, len(events.Events))
	}
}

func TestAnErrorOfTheUpdateGoesAheadOfPodsThatAreStuck(t *testing.T) {
	update := &PhaseError{PhaseUpdate, errors.New("x")}
	res := Result{Err: update, Stuck: []Stuck{{Pod: "web-0", Message: "waits"}}}
	if got := res.FailedPhases(); !slices.Equal(got, []*PhaseError{update}) {
		t.Errorf("the failures are %v", got)
	}
	res.Err = &PhaseError{PhaseScale, errors.New("y")}
	if got := res.FailedPhases(); len(got) != 2 || got[1].Error() != "pod web-0 is not updated: waits" {
		t.Errorf("the failures are %v", got)
	}
}

// What an update of its owner waits for is none of the business of a guest.
func TestAGuestTellsNothingOfResizes(t *testing.T) {
	e := rules.Engine(t, "")
	r, f := testRound(e, 1, 1, func(_ *Facts, pods []*corev1.Pod) { resizing(pods[0], corev1.PodReasonDeferred, "full") })
	r.c.kind = struct{ KindWithSharedPods }{}
	if got := r.findStuck(f, Result{}); got != nil || r.memory.stuck[types.UID("u0")] != "" {
		t.Errorf("stuck are %v", got)
	}
}

// A pod that is stuck is ready, and unavailable: behind an available pod it would use up
// what may be unavailable indefinitely.
func TestAPodThatIsStuckIsMovedFirst(t *testing.T) {
	e := rules.Engine(t, "")
	r, f := testRound(e, 3, 0, func(_ *Facts, pods []*corev1.Pod) { resizing(pods[2], corev1.PodReasonDeferred, "full") })
	in := f.PlanInput()
	if got := r.orderCandidates(t.Context(), f, points.PlanOutput{}, in, f.IsCandidate).candidates; len(got) != 3 || got[0].Pod.Name != "web-2" || got[0].Available || got[1].Pod.Name != "web-0" {
		t.Errorf("the order is %+v", got)
	}
	if got := r.orderCandidates(t.Context(), f, points.PlanOutput{Unavailable: points.UnavailableFirst}, in, f.IsCandidate).candidates; got[0].Pod.Name != "web-0" {
		t.Errorf("where unavailable pods go first by the plan, the order is %+v", got)
	}
	f.kind = struct{ KindWithSharedPods }{}
	order := []int{0, 1, 2}
	if f.underWayFirst(order); !slices.Equal(order, []int{0, 1, 2}) {
		t.Errorf("the order of a guest is %v", order)
	}
}
