package cloneset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Budget asks the PodUnavailableBudget of a pod whether it may be updated in place
// now, and takes the pod from it. The hold is why not, nil if it may (CS-11).
type Budget func(context.Context, *corev1.Pod) (*decision.Hold, error)

// WithBudget has budgets asked before each update in place (gate
// PodUnavailableBudgetUpdateGate).
func WithBudget(b Budget) Option { return func(r *Reconciler) { r.budget = b } }

// refusedAgain is when a pod that its budget refused is asked about again.
const refusedAgain = time.Second

// mayUpdate asks the budget of a pod. Once one was refused the round ends: others
// of the workload have the same budget, more likely than not.
func (r *Reconciler) mayUpdate(ctx context.Context, w *world, p *facts.Pod, spec *kruise.UpdateSpec) (bool, error) {
	restarts := len(spec.ContainerImages) + len(spec.ContainerResources) + len(spec.ContainerRefMetadata)
	if r.budget == nil || restarts == 0 || !p.Ready {
		return true, nil
	}
	if w.refusal() != nil {
		w.refuse(p.Name, nil)
		return false, nil
	}
	hold, err := r.budget(ctx, p.Pod)
	if err != nil {
		return false, fmt.Errorf("asking the budget of pod %s: %w", p.Name, err)
	}
	if hold != nil {
		w.refuse(p.Name, hold)
		w.again.in(refusedAgain)
	}
	return hold == nil, nil
}

// refuse notes a pod that is not updated, and why if it was asked.
func (w *world) refuse(name string, hold *decision.Hold) {
	w.changesMu.Lock()
	defer w.changesMu.Unlock()
	w.refused = append(w.refused, name)
	if hold != nil && w.budgetHold == nil {
		h := *hold
		h.Pod = name // it holds no others by what it says
		w.budgetHold = &h
	}
}

func (w *world) refusal() *decision.Hold {
	w.changesMu.Lock()
	defer w.changesMu.Unlock()
	return w.budgetHold
}

// deny notes a pod whose write the API server refused because a budget or a rule
// of users said so. The error stays one: who is refused tries again.
func (w *world) deny(name string, err error) {
	h := protection.RefusedBy(err)
	if h == nil {
		return
	}
	w.hold(name, *h)
}

// hold notes a pod that the round had chosen and that stays as it is.
func (w *world) hold(name string, h decision.Hold) {
	w.changesMu.Lock()
	defer w.changesMu.Unlock()
	h.Pod = name
	w.denied = append(w.denied, selection.Skip{Name: name, Hold: h})
}

// noteRefused reports the pods that the round had chosen and that it was kept from
// moving: nobody is told that their update has begun.
func (w *world) noteRefused() {
	slices.SortFunc(w.denied, func(a, b selection.Skip) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range w.denied {
		w.taken = slices.DeleteFunc(w.taken, func(name string) bool { return name == d.Name })
		w.skipped = append(w.skipped, d)
	}
	if w.budgetHold == nil {
		return
	}
	w.holds = append(w.holds, *w.budgetHold)
	w.taken = slices.DeleteFunc(w.taken, func(name string) bool { return slices.Contains(w.refused, name) })
	for _, name := range w.refused {
		w.skipped = append(w.skipped, selection.Skip{Name: name, Hold: *w.budgetHold})
	}
}
