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

// Outcome is what came of carrying decisions out.
type Outcome struct {
	// Moved are the pods whose move was begun.
	Moved []types.NamespacedName
	// Kept were chosen and stay as they are: by their budget, or because the API server
	// refused the write for a budget or a rule of a user.
	Kept []selection.Skip
	// BudgetHold is the first refusal of a budget that was asked ahead of the write.
	BudgetHold *decision.Hold
}

// keptPods collects, from moves that run in parallel, the pods that stay as they are.
type keptPods struct {
	mu      sync.Mutex
	hold    *decision.Hold               // the first refusal of a budget
	holds   map[types.UID]*decision.Hold // the first refusal of pods that share a budget
	refused []selection.Skip             // by a budget, or not asked about after it
	denied  []selection.Skip             // by the API server
}

// executeMoves carries decisions out.
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

// movePod moves one pod as it was decided for its revision.
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
			r.memory.replaced.addName(f.TargetRevision(), name) // before, since a surge creates the next pod at once
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

// updatingStateEdit is the edit that shows the lifecycle state of a pod whose update begins. Where no
// gate shuts and no hook looks at the state, it would cost a write to leave it.
func (r *Round) updatingStateEdit(f *Facts, m Move, restarts bool) func(*corev1.Pod) {
	shown := f.Lifecycle != nil || restarts && m.Pod.State != "" && !m.Change.KeepReady
	return func(pod *corev1.Pod) {
		if shown && !r.c.typ.PlainUpdates {
			lifecycle.SetState(pod, kruise.LifecycleStateUpdating, f.Now)
		}
	}
}

// updateGraceSeconds is for how many seconds a pod is out of its services before its images change.
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

// Budget asks the PodUnavailableBudget of a pod whether it may be updated in place now,
// and takes the pod from it. The hold is why not, nil if it may (CS-11).
type Budget func(context.Context, *corev1.Pod) (*decision.Hold, error)

// refusedAgain is when a pod that its budget refused is asked about again.
const refusedAgain = time.Second

// mayUpdate asks the budget of a pod of which containers restart. Once one was refused no other of its workload is asked about: the
// pods of a workload have the same budget, more likely than not.
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

// addSpared adds to an outcome what budgets refused beside the update.
func (r *Round) addSpared(o Outcome) Outcome {
	r.spared.mu.Lock()
	defer r.spared.mu.Unlock()
	o.BudgetHold, o.Kept = cmp.Or(o.BudgetHold, r.spared.hold), append(o.Kept, r.spared.refused...)
	return o
}

// sharesBudget tells the pods that share a budget from others: pods of a guest are of many workloads.
func (r *Round) sharesBudget(p *facts.Pod) types.UID {
	if _, ok := r.c.kind.(KindWithSharedPods); !ok {
		return ""
	}
	if of := metav1.GetControllerOfNoCopy(p.Pod); of != nil {
		return of.UID
	}
	return p.UID
}

// refusesAnother notes a pod that is not asked about, since its budget refused another one.
func (k *keptPods) refusesAnother(pod types.NamespacedName, sharing types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	hold := k.holds[sharing]
	if hold != nil {
		k.refused = append(k.refused, selection.Skip{Pod: pod, Hold: *hold})
	}
	return hold != nil
}

// recordRefusal notes a pod that its budget refused, and why.
func (k *keptPods) recordRefusal(pod types.NamespacedName, sharing types.UID, hold *decision.Hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := hold.OfPod(pod.Namespace, pod.Name) // it holds no others by what it says
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
// user. The error stays one, so that the write is tried again.
func (k *keptPods) recordDenial(pod types.NamespacedName, err error) {
	h := protection.RefusedBy(err)
	if h == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.denied = append(k.denied, selection.Skip{Pod: pod, Hold: h.OfPod(pod.Namespace, pod.Name)})
}

// buildOutcome tells the pods that were moved from those that were kept.
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

// compareNames orders pods by name, and those of one name by namespace.
func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
}

// Result is what a round decided, and what came of it.
type Result struct {
	Decisions
	Outcome
	// ScaleHolds are why policies hold the scaling.
	ScaleHolds []decision.Hold
	// Stuck are pods whose update has begun and does not end by itself.
	Stuck []Stuck
	// restartHeld is the text that the condition adds to the first hold while a restart waits for it.
	restartHeld string
	// Err joins PhaseErrors; nil if nothing failed.
	Err error
}

// TopHold is what a user has to know first of why pods are not moved: the first hold of
// the plan, a refusal of a budget, else the first of a pod. Waiting for maxUnavailable or
// the partition is how a rollout goes, not a hold.
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

// planAndBudgetHolds are those of the plan and of a budget.
func (res Result) planAndBudgetHolds() []decision.Hold {
	if res.BudgetHold == nil {
		return res.Holds
	}
	return append(slices.Clone(res.Holds), *res.BudgetHold)
}

// skippedCandidates are the candidates that stay as they are.
func (res Result) skippedCandidates() []selection.Skip { return slices.Concat(res.Skipped, res.Kept) }

// FailedPhases are the phases that failed, but not those that only lost a race. Updating pods
// fails too while one of them is stuck.
func (res Result) FailedPhases() []*PhaseError {
	out := slices.DeleteFunc(phaseErrors(res.Err), func(e *PhaseError) bool { return IsConflict(e) })
	if len(res.Stuck) > 0 && !slices.ContainsFunc(out, func(e *PhaseError) bool { return e.Phase == PhaseUpdate }) {
		out = append(out, &PhaseError{PhaseUpdate, stuckError(res.Stuck)})
	}
	return out
}

// PhaseSucceeded reports whether a phase ran without an error: reading what there is has, or there were no Result. A round that scales does not
// update, and a phase that only lost a race has neither failed nor succeeded.
func (res Result) PhaseSucceeded(phase string) bool {
	ran := phase == PhaseScale || phase == failure.ConditionType || (phase == PhaseUpdate && res.Looked && len(res.Stuck) == 0)
	return ran && !slices.ContainsFunc(phaseErrors(res.Err), func(e *PhaseError) bool { return e.Phase == phase })
}

// phaseErrors are the phases that ended with an error.
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
	// Phase is PhaseScale or PhaseUpdate, which are the types of the conditions too.
	Phase string
	Err   error
}

func (e *PhaseError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *PhaseError) Unwrap() error { return e.Err }

func newPhaseError(name string, err error) error {
	if err == nil {
		return nil
	}
	return &PhaseError{name, err}
}
