package cloneset

import (
	"context"
	"fmt"
	"slices"
	"time"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/victims"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// scale creates or deletes pods, and says whether it did (CS-04). The order is
// fixed: what is still needed comes back, then creation, then deletions that
// were asked for, then scale-in. While pods are created nothing is deleted.
func (r *Reconciler) scale(ctx context.Context, w *world) (acted bool, err error) {
	d := w.diff(true)
	if acted, err := r.regret(ctx, w, d); acted || err != nil {
		return acted, err
	}
	r.holdSurge(ctx, w, &d)
	plan := r.decideScale(ctx, w, d)
	if d.Up > 0 {
		r.tellLimit(w, plan.Create, d.Up)
		if ids := w.freeIDs(d.Up, plan.Create); len(ids) > 0 {
			return true, r.create(ctx, w, ids, plan.CreateCurrent)
		}
		if plan.Create > 0 { // all wait for terminating pods, which may take long
			return r.remove(ctx, w, d, plan)
		}
		// Pods that prepared their deletion count as unavailable. Those that may
		// go have to, or with excludePreparingDelete and a scaleStrategy they
		// would keep the pods that replace them from being created, for ever.
		return r.deletePods(ctx, w, w.preparingDelete())
	}
	w.memory.limited = -1
	for _, id := range w.memory.toTry() { // nobody needs them any more; the next round cleans up
		w.memory.try(id, true)
		w.again.in(time.Second)
	}
	return r.remove(ctx, w, d, plan)
}

// holdSurge leaves out the pods that an update wants beyond the replicas while a
// policy holds the whole of it: they would be of the new revision, which is what
// is held. A paused update has none either. Those that are there stay, and
// pods that are to be deleted already get their replacement.
func (r *Reconciler) holdSurge(ctx context.Context, w *world, d *budget.Diff) {
	update := w.diff(false)
	if d.UseSurge == 0 || d.Up == 0 || update.Update == 0 || slices.ContainsFunc(w.pods, w.specified) {
		return
	}
	plan, _ := engine.Decide(ctx, r.engine, decision.RolloutPlan(), w.subject(), w.planInput(update)) // update asks for the record
	if !slices.ContainsFunc(plan.Holds, func(h decision.Hold) bool { return h.Pod == "" && len(h.Where) == 0 }) {
		return
	}
	most := w.strategy.MaxSurge
	w.strategy.MaxSurge = 0
	without := w.diff(true)
	w.strategy.MaxSurge = most
	if without.Up < d.Up {
		d.Up, d.UpOld = without.Up, without.UpOld
	}
}

// tellLimit tells by an event that creation is limited, once for each limit: a
// reconcile may come any number of times before the next pod is available.
func (r *Reconciler) tellLimit(w *world, limit, missing int) {
	if limit >= missing {
		w.memory.limited = -1
		return
	}
	if w.memory.limited != limit {
		w.memory.limited = limit
		r.warn(w.set, kruise.ScaleUpLimitedReason, fmt.Sprintf(kruise.ScaleUpLimitedMessage, limit))
	}
}

// decideScale asks rollout/scale and holds the answer to the differences.
func (r *Reconciler) decideScale(ctx context.Context, w *world, d budget.Diff) decision.ScaleOutput {
	if d.Up == 0 && d.Down == 0 {
		return decision.ScaleOutput{}
	}
	in := decision.ScaleInput{
		Now: w.now.UnixNano(), Workload: w.workload(), Strategy: w.strategy, Revisions: w.revisions(), Counts: w.counts(),
		Up: d.Up, UpCurrent: d.UpOld, TotalUnavailable: d.TotalUnavailable,
		Down: d.Down, DownCurrent: d.DownOld, ReadyLimit: d.ReadyLimit,
	}
	for _, p := range w.pods {
		planned := w.leaves(p)
		if planned {
			in.PlannedDeletes++
		}
		if d.Down > 0 && !planned {
			v := decision.VictimFacts{PodFacts: p.Facts}
			if p.Available(w.minReady, w.now) {
				v.Available = 1
			}
			in.Pods = append(in.Pods, v)
		}
	}
	out, rec := engine.Decide(ctx, r.engine, decision.RolloutScale(), w.subject(), in)
	w.decided(rec)
	return clampScale(out, d, w.strategy.ScaleMaxUnavailable)
}

// clampScale holds an answer to the differences: never more pods than are missing
// or too many, and, whatever the answer says of revisions, never more updated
// ones than replicas - partition.
func clampScale(out decision.ScaleOutput, d budget.Diff, maxUnavailable int) decision.ScaleOutput {
	out.Create = max(min(out.Create, d.Up, maxUnavailable-d.TotalUnavailable), 0)
	out.CreateCurrent = min(max(out.CreateCurrent, out.Create-max(d.Up-d.UpOld, 0), 0), out.Create)
	out.Delete = max(min(out.Delete, d.Down), 0)
	out.DeleteCurrent = max(min(out.DeleteCurrent, out.Delete, d.DownOld), 0)
	return out
}

// regret brings pods back that prepared their deletion and are needed again
// (CS-03). A pod that was made not ready for it is not brought back: its mark
// would never be taken off. Nor is an updated one that the partition has no place
// for, where CS-03 takes no notice: one of the current revision is made instead.
func (r *Reconciler) regret(ctx context.Context, w *world, d budget.Diff) (bool, error) {
	if l := w.set.Spec.Lifecycle; l != nil {
		for _, hook := range []*kruise.LifecycleHook{l.PreDelete, l.InPlaceUpdate} {
			if hook != nil && hook.MarkPodNotReady {
				return false, nil
			}
		}
	}
	staying, updated := 0, 0
	for _, p := range w.pods {
		if !w.leaves(p) {
			staying++
			add(&updated, p.Facts.Updated)
		}
	}
	need, room := replicas(w.set)-staying, replicas(w.set)-w.strategy.Partition-updated
	if w.history.Current.Name == w.history.Update.Name { // there is nothing to keep pods at
		room = need
	}
	if w.excludes() { // it counts again from then on, beside those that wait to be deleted
		need = min(need, d.Up)
	}
	acted := false
	for _, p := range w.pods {
		if need <= 0 {
			break
		}
		if p.State != kruise.LifecycleStatePreparingDelete || w.specified(p) || (p.Facts.Updated && room <= 0) {
			continue
		}
		if p.Facts.Updated {
			room--
		}
		pod, err := r.states.Move(ctx, p.Pod, kruise.LifecycleStatePreparingNormal, w.set.Spec.Lifecycle, false)
		r.wrote(ctx, w, p.Pod, pod, err)
		if err != nil {
			return acted, err
		}
		need--
		acted = true
	}
	return acted, nil
}

// remove deletes pods: those whose hook let go, those that were asked for, and
// then, when none of these is left, the ones a scale-in chose.
func (r *Reconciler) remove(ctx context.Context, w *world, d budget.Diff, plan decision.ScaleOutput) (bool, error) {
	victims := w.preparingDelete()
	planned := len(victims)
	ready := min(d.ReadyLimit, w.spare())
	pass := func(p *facts.Pod) bool { // CS-06
		if !p.Available(0, w.now) {
			return true
		}
		ready--
		return ready >= 0
	}
	for _, p := range w.pods {
		if p.State == kruise.LifecycleStatePreparingDelete || !w.specified(p) {
			continue
		}
		planned++
		if pass(p) {
			victims = append(victims, p)
		}
	}
	if planned == 0 && plan.Delete > 0 {
		for _, p := range w.chooseVictims(plan) {
			if pass(p) {
				victims = append(victims, p)
			}
		}
	}
	return r.deletePods(ctx, w, victims)
}

// spare is how many of the available pods are more than must be. The limit of
// CS-01 leaves out that pods which are asked to go may be unavailable already:
// two such and two ready ones would all go where two may be unavailable.
func (w *world) spare() int {
	available := 0
	for _, p := range w.pods {
		add(&available, p.Available(w.minReady, w.now))
	}
	return max(available-(replicas(w.set)-w.strategy.MaxUnavailable), 0)
}

func (w *world) preparingDelete() (out []*facts.Pod) {
	for _, p := range w.pods {
		if p.State == kruise.LifecycleStatePreparingDelete {
			out = append(out, p)
		}
	}
	return out
}

// chooseVictims takes the pods of the old revision first (CS-07).
func (w *world) chooseVictims(plan decision.ScaleOutput) []*facts.Pod {
	var cands []*facts.Pod
	for _, p := range w.pods {
		if !w.leaves(p) {
			cands = append(cands, p)
		}
	}
	var current, update []int
	for i, p := range cands {
		if p.Facts.Updated || w.soonUpdated(p) { // as in the differences
			update = append(update, i)
		} else {
			current = append(current, i)
		}
	}
	take := func(n int, group []int) (out []*facts.Pod) {
		if n <= 0 {
			return nil
		}
		for _, i := range victims.Order(cands, group, plan, w.set.Spec.Template.Spec.TopologySpreadConstraints, w.topology) {
			if out = append(out, cands[i]); len(out) == n {
				break
			}
		}
		return out
	}
	out := take(plan.DeleteCurrent, current)
	return append(out, take(plan.Delete-len(out), update)...)
}

// deletePods deletes pods and their claims, or tells the hook that holds them.
func (r *Reconciler) deletePods(ctx context.Context, w *world, pods []*facts.Pod) (bool, error) {
	var acts []func() error
	for _, p := range pods {
		switch lifecycle.BeforeDelete(p.Pod, w.set.Spec.Lifecycle) {
		case lifecycle.Prepare:
			acts = append(acts, func() error {
				pod, err := r.states.Move(ctx, p.Pod, kruise.LifecycleStatePreparingDelete, w.set.Spec.Lifecycle, false)
				r.wrote(ctx, w, p.Pod, pod, err)
				return err
			})
		case lifecycle.Go:
			acts = append(acts, func() error { return r.deletePod(ctx, w, p) })
		}
	}
	return len(acts) > 0, r.inParallel(w, acts)
}

func (r *Reconciler) deletePod(ctx context.Context, w *world, p *facts.Pod) error {
	if err := r.deleteObject(ctx, w, p); err != nil {
		if !conflict(err) {
			r.warn(w.set, kruise.FailedDeleteReason, fmt.Sprintf("failed to delete pod %s: %v", p.Name, err))
		}
		return fmt.Errorf("deleting pod %s: %w", p.Name, err)
	}
	r.overlay.Deleted(w.set.UID, p.Pod)
	r.normal(w.set, kruise.SuccessfulDeleteReason, fmt.Sprintf(kruise.SuccessfulDeleteMessage, p.Name))
	return r.deleteClaims(ctx, w, p.Labels[kruise.CloneSetInstanceIDKey])
}
