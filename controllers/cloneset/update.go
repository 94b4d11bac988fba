package cloneset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

const revisionLabel = appsv1.ControllerRevisionHashLabelKey

// target is the revision that pods are moved to: back to the current one only
// where the difference says so.
func (w *world) target() *appsv1.ControllerRevision {
	if w.backwards {
		return w.history.Current
	}
	return w.history.Update
}

// update moves pods to their target revision, as many as plan, rank and clamp
// allow (CS-08 to CS-12).
func (r *Reconciler) update(ctx context.Context, w *world) error {
	d := w.diff(false)
	w.planned, w.backwards = true, d.Update < 0
	if d.Update == 0 {
		return nil
	}
	in := w.planInput(d)
	plan, rec := engine.Decide(ctx, r.engine, decision.RolloutPlan(), w.subject(), in)
	w.decided(rec)
	limits := selection.Clamp(in, plan)
	limits.Limit = max(limits.Limit-w.countRecreating(), 0)
	plan.Holds = wholeFirst(plan.Holds)
	whole := w.noteHolds(plan.Holds)
	if whole || w.onDelete() || limits.Limit == 0 {
		w.skipped = skipAll(w.candidates(), plan.Holds)
		return nil
	}
	order := r.order(ctx, w, plan, in)
	taken, skipped := selection.Walk(order.candidates, plan.Holds, limits, w.unavailable())
	w.taken, w.skipped = taken, skipped
	var acts []func() error
	for _, name := range taken {
		p := order.byName[name]
		acts = append(acts, func() error {
			err := r.updatePod(ctx, w, p)
			w.deny(p.Name, err)
			return err
		})
	}
	err := r.inParallel(w, acts)
	w.noteRefused()
	return err
}

// candidate says whether a pod is not at its target and may be moved (CS-08).
// One that waits for its recreation has been taken already.
func (w *world) candidate(p *facts.Pod) bool {
	switch {
	case p.Facts.Updated != w.backwards, w.leaves(p):
		return false
	}
	return p.State == kruise.LifecycleStateUpdated || !inplace.InGrace(p.Pod)
}

func (w *world) candidates() (out []*facts.Pod) {
	for _, p := range w.pods {
		if w.candidate(p) {
			out = append(out, p)
		}
	}
	return out
}

// updatePod moves one pod, by the way rollout/change decided for its revision.
func (r *Reconciler) updatePod(ctx context.Context, w *world, p *facts.Pod) error {
	target := w.target()
	way, err := r.way(ctx, w, w.history.ByLabel(p.Labels[revisionLabel]), target)
	if err != nil {
		return err
	}
	switch way.out.Action {
	case decision.InPlace:
		return r.updateInPlace(ctx, w, p, target, way)
	case decision.Recreate:
		return r.recreate(ctx, w, p)
	case decision.Wait:
		w.again.in(undecidedAgain)
		w.hold(p.Name, decision.Hold{Rule: string(decision.RolloutChange().Name), Reason: way.out.Reason, Message: way.out.Message})
		return nil
	}
	return fmt.Errorf(kruise.InPlaceOnlyImpossibleMessage+": %s", p.Name, way.out.Message)
}

func (r *Reconciler) updateInPlace(ctx context.Context, w *world, p *facts.Pod, target *appsv1.ControllerRevision, way way) error {
	l := w.set.Spec.Lifecycle
	switch step := lifecycle.BeforeUpdate(p.Pod, l); step {
	case lifecycle.Wait:
		return nil
	case lifecycle.Prepare, lifecycle.Rehook:
		pod, err := r.states.Move(ctx, p.Pod, kruise.LifecycleStatePreparingUpdate, l, step == lifecycle.Rehook)
		r.wrote(ctx, w, p.Pod, pod, err)
		return err
	case lifecycle.Refuse:
		return fmt.Errorf("not allowed to in-place update pod %s in state %s", p.Name, p.State)
	}
	seconds := int32(0)
	if s := rolling(w.set); s != nil && s.InPlaceUpdateStrategy != nil {
		seconds = s.InPlaceUpdateStrategy.GracePeriodSeconds
	}
	spec, err := way.diff.Spec(w.label(target.Name), seconds, w.gates.EnvFromMetadata)
	if err != nil {
		return err
	}
	way.diff.Resume(spec, p.Pod)
	if may, err := r.mayUpdate(ctx, w, p, spec); err != nil || !may {
		return err
	}
	pod, grace, err := r.updater.Start(ctx, p.Pod, spec, func(pod *corev1.Pod) {
		if l != nil { // no hook looks at the state otherwise, and leaving it costs a write
			lifecycle.Set(pod, kruise.LifecycleStateUpdating, w.now)
		}
	})
	r.wrote(ctx, w, p.Pod, pod, err)
	if err != nil {
		if !conflict(err) {
			r.warn(w.set, kruise.FailedUpdatePodInPlaceReason, fmt.Sprintf("failed to update pod %s in-place(revision %v): %v", p.Name, target.Name, err))
		}
		return err
	}
	w.again.in(grace)
	r.normal(w.set, kruise.SuccessfulUpdatePodInPlaceReason, fmt.Sprintf(kruise.SuccessfulUpdatePodInPlaceMessage, p.Name, target.Name))
	return nil
}

// recreate deletes the pod, so that the next scale makes another (CS-12). The
// walk has found room for it, by the same numbers that bound any other delete,
// so nothing is gained by marking it first: OpenKruise does, for one more write
// and one more round. A pod that a hook holds is marked, and waits for the hook.
func (r *Reconciler) recreate(ctx context.Context, w *world, p *facts.Pod) error {
	w.again.in(time.Millisecond)
	if lifecycle.BeforeDelete(p.Pod, w.set.Spec.Lifecycle) == lifecycle.Go {
		if err := r.deletePod(ctx, w, p); err != nil {
			return err
		}
		r.normal(w.set, kruise.SuccessfulUpdatePodReCreateReason, fmt.Sprintf("successfully delete pod %s for update", p.Name))
		return nil
	}
	pod := p.Pod.DeepCopy()
	pod.Labels[kruise.SpecifiedDeleteKey] = "true"
	err := r.client.Patch(ctx, pod, client.StrategicMergeFrom(p.Pod, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		pod = nil
	}
	r.wrote(ctx, w, p.Pod, pod, err)
	if err != nil {
		if !conflict(err) {
			r.warn(w.set, kruise.FailedUpdatePodReCreateReason, fmt.Sprintf("failed to mark pod %s for recreation: %v", p.Name, err))
		}
		return fmt.Errorf("marking pod %s for recreation: %w", p.Name, err)
	}
	r.normal(w.set, kruise.SuccessfulUpdatePodReCreateReason, fmt.Sprintf("successfully patch pod %s specified-delete for update", p.Name))
	return nil
}

// labelShort gives pods of older releases the label with the short hash.
func (r *Reconciler) labelShort(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	before, pod := pod, pod.DeepCopy()
	pod.Labels[podTemplateHash] = shortOf(pod.Labels[revisionLabel])
	if err := r.client.Patch(ctx, pod, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("labelling pod %s with its template hash: %w", pod.Name, err)
	}
	return pod, nil
}
