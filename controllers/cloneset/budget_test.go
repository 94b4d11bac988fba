package cloneset

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

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/policies"
)

// A budget that refuses one pod ends the round, and is told as what holds it.
func TestABudgetHoldsTheRound(t *testing.T) {
	e, err := engine.New(policies.Builtin, engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var asked []string
	r := &Reconciler{budget: func(_ context.Context, pod *corev1.Pod) (*decision.Hold, error) {
		switch asked = append(asked, pod.Name); pod.Name {
		case "web-1":
			return &decision.Hold{Rule: "protection.budget.exceeded", Reason: "BudgetExceeded", Message: "No more."}, nil
		case "web-4":
			return nil, errors.New("broken")
		}
		return nil, nil
	}}
	w := testWorld(e, 6, 0, nil)
	w.taken, w.planned = []string{"web-0", "web-1", "web-2", "web-3"}, true
	image := &kruise.UpdateSpec{ContainerImages: map[string]string{"main": "web:2"}}
	var may []string
	for _, i := range []int{0, 1, 2} {
		ok, err := r.mayUpdate(t.Context(), w, w.pods[i], image)
		if err != nil {
			t.Error(err)
		}
		if ok {
			may = append(may, w.pods[i].Name)
		}
	}
	// What restarts nothing takes nobody a pod, nor does one that is not ready.
	if ok, err := r.mayUpdate(t.Context(), w, w.pods[3], &kruise.UpdateSpec{MetaDataPatch: []byte("{}")}); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	w.pods[5].Ready = false
	if ok, err := r.mayUpdate(t.Context(), w, w.pods[5], image); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	w.noteRefused()
	if diff := cmp.Diff([]string{"web-0"}, may); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"web-0", "web-1"}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"web-0", "web-3"}, w.taken); diff != "" || w.again.after != refusedAgain {
		t.Errorf("again in %s\n%s", w.again.after, diff)
	}
	if top := w.topHold(); top == nil || top.Reason != "BudgetExceeded" || w.heldWhole() {
		t.Errorf("held by %+v", top)
	}
	for _, name := range []string{"web-1", "web-2"} {
		if a, _ := newRound(w, e).Pod(name); a.Verdict != explain.Held || a.Reason != "BudgetExceeded" {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if ok, err := r.mayUpdate(t.Context(), testWorld(e, 5, 0, nil), w.pods[4], image); ok || err == nil || !strings.Contains(err.Error(), "web-4: broken") {
		t.Errorf("%t, %v", ok, err)
	}
}

// A pod that the API server refused is told with what refused it, and not as one
// whose update has begun; any other error says nothing of policies.
func TestARefusedWriteIsToldAsWhatRefusedIt(t *testing.T) {
	e, err := engine.New(policies.Builtin, engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	w := testWorld(e, 6, 0, nil)
	w.taken, w.planned = []string{"web-0", "web-1", "web-2"}, true
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: "BudgetExceeded", Field: "protection.budget.exceeded", Message: "No more."}},
	}}}
	w.deny("web-0", nil)
	w.deny("web-1", fmt.Errorf("deleting pod web-1: %w", refused))
	w.deny("web-2", errors.New("broken"))
	w.noteRefused()
	if diff := cmp.Diff([]string{"web-0", "web-2"}, w.taken); diff != "" {
		t.Error(diff)
	}
	a, _ := newRound(w, e).Pod("web-1")
	if a.Verdict != explain.Held || a.Reason != "BudgetExceeded" || a.Rule != "protection.budget.exceeded" || a.Message != "No more." {
		t.Errorf("web-1: %+v", a)
	}
	if top := w.topHold(); top == nil || top.Pod != "web-1" || w.heldWhole() {
		t.Errorf("held by %+v", top)
	}
}
