// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	rolloutpoints "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Outcome is the result of carrying out decisions.
type Outcome struct {
	// Moved are the pods whose move was begun.
	Moved []types.NamespacedName
	// Kept are pods that were chosen but stay as they are: their budget refused them, or the API server
	// refused the write because of a budget or of a rule of a user.
	Kept []selection.Skip
	// BudgetHold is the first refusal by a budget that was checked before the write.
	BudgetHold *decision.Hold
}

// keptPods collects, from moves that run in parallel, the pods that stay as they are.
type keptPods struct {
	mu      sync.Mutex
	hold    *decision.Hold               // the first refusal of a budget
	holds   map[types.UID]*decision.Hold // the first refusal of pods that share a budget
	refused []selection.Skip             // by a budget, or not checked after a refusal
	denied  []selection.Skip             // by the API server
}

// executeMoves carries out moves.
func (r *Round) executeMoves(ctx context.Context, f *Facts, moves []Move, k *keptPods) error {
	acts := make([]func() error, len(moves))
	for i, m := range moves {
		acts[i] = func() error {
			err := r.movePod(ctx, f, m, k)
			k.recordDenial(m.Pod.Key(), err)
			return err
		}
	}
	return r.RunParallel(acts)
}

// movePod moves one pod by the decision for its revision.
func (r *Round) movePod(ctx context.Context, f *Facts, m Move, k *keptPods) error {
	if now, err := r.growClaims(ctx, f, m.Pod); err != nil || !now {
		return err
	}
	switch m.Change.Action {
	case rolloutpoints.InPlace:
		return r.updateInPlace(ctx, f, m, k)
	case rolloutpoints.Recreate:
		name := r.c.replacedName(m.Pod.Pod)
		if !f.IsRollback() {
			r.memory.replaced.addName(f.TargetRevision(), name) // first, since with surge the next pod is created at once
		}
		err := r.c.kind.RecreatePod(ctx, r, f, m.Pod)
		if err != nil {
			r.ForgetReplaced(name)
		}
		return err
	}
	return fmt.Errorf(kruise.InPlaceOnlyImpossibleMessage+": %s", f.nameOf(m.Pod.Key()), m.Change.Message)
}

func (r *Round) updateInPlace(ctx context.Context, f *Facts, m Move, k *keptPods) error {
	p := m.Pod
	if guest, ok := r.c.kind.(interface {
		KindWithSharedPods
		KindWithInPlaceUpdate
	}); ok {
		if may, err := r.mayUpdate(ctx, p, true, k); err != nil || !may {
			return err
		}
		return guest.UpdateInPlace(ctx, r, f, m)
	}
	switch step := lifecycle.BeforeUpdate(p.Pod, f.Lifecycle); step {
	case lifecycle.Wait:
		return nil
	case lifecycle.Prepare, lifecycle.Rehook:
		return r.SetState(ctx, f, p, kruise.LifecycleStatePreparingUpdate, step == lifecycle.Rehook)
	case lifecycle.Refuse:
		return fmt.Errorf("not allowed to in-place update pod %s in state %s", p.Name, p.State)
	}
	if own, ok := r.c.kind.(KindWithInPlaceUpdate); ok {
		if may, err := r.mayUpdate(ctx, p, true, k); err != nil || !may {
			return err
		}
		return own.UpdateInPlace(ctx, r, f, m)
	}
	spec, err := m.Change.Diff.UpdateSpec(f.Templates.LabelValue(f.TargetRevision()), updateGraceSeconds(f, m.Change), r.c.gates.EnvFromMetadata)
	if err != nil {
		return err
	}
	m.Change.Diff.ResumePending(spec, p.Pod)
	restarts := len(spec.ContainerImages)+len(spec.ContainerResources)+len(spec.ContainerRefMetadata) > 0
	if may, err := r.mayUpdate(ctx, p, restarts, k); err != nil || !may {
		return err
	}
	start := r.c.updater.Start
	if m.Change.KeepReady {
		start = r.c.updater.StartReady
	}
	pod, left, err := start(ctx, p.Pod, spec, r.updatingStateEdit(f, m, restarts))
	r.RecordWrite(ctx, p.Pod, pod, err)
	if err != nil {
		if !IsConflict(err) {
			r.RecordWarning(kruise.FailedUpdatePodInPlaceReason, fmt.Sprintf("failed to update pod %s in-place(revision %v): %v", p.Name, f.TargetRevision(), err))
		}
		return err
	}
	r.RequeueAfter(left)
	r.RecordNormal(kruise.SuccessfulUpdatePodInPlaceReason, fmt.Sprintf(kruise.SuccessfulUpdatePodInPlaceMessage, p.Name, f.TargetRevision()))
	return nil
}

// updatingStateEdit returns the edit that sets the lifecycle state of a pod whose update begins. It sets no state if no
// gate closes and no hook reads the state, since leaving the state would take one more write.
func (r *Round) updatingStateEdit(f *Facts, m Move, restarts bool) func(*corev1.Pod) {
	shown := f.Lifecycle != nil || restarts && m.Pod.State != "" && !m.Change.KeepReady
	return func(pod *corev1.Pod) {
		if shown && !r.c.typ.PlainUpdates {
			lifecycle.SetState(pod, kruise.LifecycleStateUpdating, f.Now)
		}
	}
}

// updateGraceSeconds is how many seconds a pod is out of its services before its images change.
func updateGraceSeconds(f *Facts, c Change) int32 {
	if c.KeepReady {
		return 0
	}
	return f.GracePeriodSeconds
}

// KindWithInPlaceUpdate is a Kind that changes pods in place in its own way, because its templates
// are not whole pod templates.
type KindWithInPlaceUpdate interface {
	UpdateInPlace(ctx context.Context, r *Round, f *Facts, m Move) error
}

// Budget checks whether the PodUnavailableBudget of a pod allows an update in place now,
// and counts the pod against it. The hold is the refusal, nil if it is allowed (CS-11).
type Budget func(context.Context, *corev1.Pod) (*decision.Hold, error)

// refusedAgain is the time after which a pod that its budget refused is checked again.
const refusedAgain = time.Second

// mayUpdate checks the budget of a pod whose containers will restart. After one refusal it checks no other pod of the same workload, since the
// pods of a workload usually have the same budget.
func (r *Round) mayUpdate(ctx context.Context, p *facts.Pod, restarts bool, k *keptPods) (bool, error) {
	if r.c.budget == nil || !restarts || !p.Ready {
		return true, nil
	}
	sharing := r.sharesBudget(p)
	if k.refusesAnother(p.Key(), sharing) {
		return false, nil
	}
	hold, err := r.c.budget(ctx, p.Pod)
	if err != nil {
		return false, fmt.Errorf("asking the budget of pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	if hold != nil {
		k.recordRefusal(p.Key(), sharing, hold)
		r.RequeueAfter(refusedAgain)
	}
	return hold == nil, nil
}

// addSpared adds to an outcome the refusals of budgets in WriteBeside.
func (r *Round) addSpared(o Outcome) Outcome {
	r.spared.mu.Lock()
	defer r.spared.mu.Unlock()
	o.BudgetHold, o.Kept = cmp.Or(o.BudgetHold, r.spared.hold), append(o.Kept, r.spared.refused...)
	return o
}

// sharesBudget returns a key that is the same for pods that probably share a budget: for a kind with shared pods, their controller.
func (r *Round) sharesBudget(p *facts.Pod) types.UID {
	if _, ok := r.c.kind.(KindWithSharedPods); !ok {
		return ""
	}
	if of := metav1.GetControllerOfNoCopy(p.Pod); of != nil {
		return of.UID
	}
	return p.UID
}

// refusesAnother reports whether the budget of a pod refused another pod, and notes the pod in that case.
func (k *keptPods) refusesAnother(pod types.NamespacedName, sharing types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	hold := k.holds[sharing]
	if hold != nil {
		k.refused = append(k.refused, selection.Skip{Pod: pod, Hold: *hold})
	}
	return hold != nil
}

// recordRefusal notes a pod that its budget refused, with the hold.
func (k *keptPods) recordRefusal(pod types.NamespacedName, sharing types.UID, hold *decision.Hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := hold.OfPod(pod.Namespace, pod.Name) // the hold names only this pod
	k.refused = append(k.refused, selection.Skip{Pod: pod, Hold: h})
	if k.holds[sharing] != nil {
		return
	}
	if k.holds == nil {
		k.holds = map[types.UID]*decision.Hold{}
	}
	k.holds[sharing] = &h
	k.hold = cmp.Or(k.hold, &h)
}

// recordDenial notes a pod whose write the API server refused because of a budget or a rule of a
// user. The caller still returns the error, so that the write is tried again.
func (k *keptPods) recordDenial(pod types.NamespacedName, err error) {
	h := protection.RefusedBy(err)
	if h == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.denied = append(k.denied, selection.Skip{Pod: pod, Hold: h.OfPod(pod.Namespace, pod.Name)})
}

// buildOutcome separates the pods that were moved from those that were kept.
func (k *keptPods) buildOutcome(d Decisions) Outcome {
	out := Outcome{Kept: k.denied, BudgetHold: k.hold}
	slices.SortFunc(out.Kept, func(a, b selection.Skip) int { return compareNames(a.Pod, b.Pod) })
	out.Kept = append(out.Kept, k.refused...)
	stays := map[types.NamespacedName]bool{}
	for _, s := range out.Kept {
		stays[s.Pod] = true
	}
	for _, m := range d.Take {
		if !stays[m.Pod.Key()] {
			out.Moved = append(out.Moved, m.Pod.Key())
		}
	}
	return out
}

// compareNames orders pods by name and then by namespace.
func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
}

// Result is the decisions of a round, and their outcome.
type Result struct {
	Decisions
	Outcome
	// ScaleHolds are the holds of the scaling by policies.
	ScaleHolds []decision.Hold
	// Stuck are pods whose update has begun and cannot complete by itself.
	Stuck []Stuck
	// restartHeld is the text that the condition adds to the first hold while a restart waits for it.
	restartHeld string
	// Err joins PhaseErrors; nil if nothing failed.
	Err error
}

// TopHold returns the most important reason for a user why pods are not moved: the first hold of
// the plan, a refusal by a budget, or else the first hold of a pod. Waiting for maxUnavailable or
// the partition is part of a rollout, not a hold.
func (res Result) TopHold() *decision.Hold {
	if holds := res.planAndBudgetHolds(); len(holds) > 0 {
		return &holds[0]
	}
	for _, s := range res.skippedCandidates() {
		if !s.Hold.IsFromWalk() {
			return &s.Hold
		}
	}
	return nil
}

// planAndBudgetHolds are the holds of the plan, and the refusal of a budget.
func (res Result) planAndBudgetHolds() []decision.Hold {
	if res.BudgetHold == nil {
		return res.Holds
	}
	return append(slices.Clone(res.Holds), *res.BudgetHold)
}

// skippedCandidates are the candidates that stay as they are.
func (res Result) skippedCandidates() []selection.Skip { return slices.Concat(res.Skipped, res.Kept) }

// FailedPhases returns the phases that failed, except those that only lost a race. The update of pods
// also counts as failed while a pod is stuck.
func (res Result) FailedPhases() []*PhaseError {
	out := slices.DeleteFunc(phaseErrors(res.Err), func(e *PhaseError) bool { return IsConflict(e) })
	if len(res.Stuck) > 0 && !slices.ContainsFunc(out, func(e *PhaseError) bool { return e.Phase == PhaseUpdate }) {
		out = append(out, &PhaseError{PhaseUpdate, stuckError(res.Stuck)})
	}
	return out
}

// PhaseSucceeded reports whether a phase ran without an error. Reading the state has succeeded, as otherwise there would be no Result. A round
// that scales does not update, and a phase that only lost a race has neither failed nor succeeded.
func (res Result) PhaseSucceeded(phase string) bool {
	ran := phase == PhaseScale || phase == failure.ConditionType || (phase == PhaseUpdate && res.Looked && len(res.Stuck) == 0)
	return ran && !slices.ContainsFunc(phaseErrors(res.Err), func(e *PhaseError) bool { return e.Phase == phase })
}

// phaseErrors returns the phases that ended with an error.
func phaseErrors(err error) (out []*PhaseError) {
	switch e := err.(type) {
	case *PhaseError:
		return []*PhaseError{e}
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			out = append(out, phaseErrors(one)...)
		}
	}
	return out
}

// Phases of a round.
const (
	PhaseScale  = "FailedScale"
	PhaseUpdate = "FailedUpdate"
)

// PhaseError is an error with the condition that reports it.
type PhaseError struct {
	// Phase is PhaseScale or PhaseUpdate, which are also the types of the conditions.
	Phase string
	Err   error
}

func (e *PhaseError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PhaseError) Unwrap() error { return e.Err }

func newPhaseError(name string, err error) error {
	if err == nil {
		return nil
	}
	return &PhaseError{name, err}
}
