// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/test/rules"
)

func podsInShop(names ...string) (out []types.NamespacedName) {
	for _, name := range names {
		out = append(out, types.NamespacedName{Namespace: "shop", Name: name})
	}
	return out
}

// A budget that refuses one pod ends the round, and is reported as what holds it.
func TestABudgetHoldsTheRound(t *testing.T) {
	e := rules.Engine(t, "")
	var asked []string
	r, f := testRound(e, 6, 0, nil)
	r.c.budget = func(_ context.Context, pod *corev1.Pod) (*decision.Hold, error) {
		switch asked = append(asked, pod.Name); pod.Name {
		case "web-1":
			return &decision.Hold{Rule: "protection.budget.exceeded", Reason: "BudgetExceeded", Message: "No more."}, nil
		case "web-4":
			return nil, errors.New("broken")
		}
		return nil, nil
	}
	k, d := &keptPods{}, taken(f, 4)
	var may []string
	for _, i := range []int{0, 1, 2} {
		ok, err := r.mayUpdate(t.Context(), f.Pods[i], true, k)
		if err != nil {
			t.Error(err)
		}
		if ok {
			may = append(may, f.Pods[i].Name)
		}
	}
	// A change without a restart makes no pod unavailable, nor does a pod that is not ready.
	if ok, err := r.mayUpdate(t.Context(), f.Pods[3], false, k); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	f.Pods[5].Ready = false
	if ok, err := r.mayUpdate(t.Context(), f.Pods[5], true, k); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	res := Result{Decisions: d, Outcome: k.buildOutcome(d)}
	if diff := cmp.Diff([]string{"web-0"}, may); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"web-0", "web-1"}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(podsInShop("web-0", "web-3"), res.Moved); diff != "" || r.again.after != refusedAgain {
		t.Errorf("again in %s\n%s", r.again.after, diff)
	}
	if top := res.TopHold(); top == nil || top.Reason != "BudgetExceeded" || top.IsWholeWorkload() {
		t.Errorf("held by %+v", top)
	}
	for _, name := range []string{"web-1", "web-2"} {
		if a, _ := newRound(e, f, res, nil).ExplainPod("shop", name); a.Verdict != explain.Held || a.Reason != "BudgetExceeded" {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if ok, err := r.mayUpdate(t.Context(), f.Pods[4], true, &keptPods{}); ok || err == nil || !strings.Contains(err.Error(), "web-4: broken") {
		t.Errorf("%t, %v", ok, err)
	}
}

// A pod that the API server refused is reported with what refused it, and not as one
// whose update has begun; any other error says nothing of policies.
func TestARefusedWriteIsToldAsWhatRefusedIt(t *testing.T) {
	e := rules.Engine(t, "")
	_, f := testRound(e, 6, 0, nil)
	k, d := &keptPods{}, taken(f, 3)
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: "BudgetExceeded", Field: "protection.budget.exceeded", Message: "No more."}},
	}}}
	k.recordDenial(d.Take[0].Pod.Key(), nil)
	k.recordDenial(d.Take[1].Pod.Key(), fmt.Errorf("deleting pod web-1: %w", refused))
	k.recordDenial(d.Take[2].Pod.Key(), errors.New("broken"))
	res := Result{Decisions: d, Outcome: k.buildOutcome(d)}
	if diff := cmp.Diff(podsInShop("web-0", "web-2"), res.Moved); diff != "" {
		t.Error(diff)
	}
	a, _ := newRound(e, f, res, nil).ExplainPod("shop", "web-1")
	if a.Verdict != explain.Held || a.Reason != "BudgetExceeded" || a.Rule != "protection.budget.exceeded" || a.Message != "No more." {
		t.Errorf("web-1: %+v", a)
	}
	if top := res.TopHold(); top == nil || top.Pod != "web-1" || top.IsWholeWorkload() {
		t.Errorf("held by %+v", top)
	}
}

// taken are the decisions to move the first n pods.
func taken(f *Facts, n int) Decisions {
	d := Decisions{Looked: true}
	for _, p := range f.Pods[:n] {
		d.Take = append(d.Take, Move{Pod: p})
	}
	return d
}
