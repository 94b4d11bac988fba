// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/lifecycle"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scaledown"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// scaler scales one CloneSet in one round.
type scaler struct {
	k      *Kind
	r      *rollout.Round
	f      *rollout.Facts
	t      *rollout.PodTemplates
	set    *kruise.CloneSet
	memory *memory
	going  []string // ids of claims that terminate
}

func (k *Kind) newScaler(r *rollout.Round, f *rollout.Facts) *scaler {
	return &scaler{
		k: k, r: r, f: f, t: f.Templates.(*rollout.PodTemplates),
		set: f.Workload.(*kruise.CloneSet), memory: r.KindMemory().(*memory),
	}
}

// ScalePods implements rollout.Kind (CS-04). The order is fixed: pods that are still needed
// are restored, then pods are created, then deleted as requested, then deleted by scale-in. A round
// that creates pods deletes none.
func (k *Kind) ScalePods(ctx context.Context, r *rollout.Round, f *rollout.Facts) (acted bool, err error) {
	s := k.newScaler(r, f)
	if err := s.findClaims(ctx); err != nil {
		return false, err
	}
	if err := s.cleanClaims(ctx); err != nil {
		return false, err
	}
	repaired := s.repairClaims(ctx)
	if acted, err = s.scalePods(ctx); repaired != nil {
		err = message.JoinErrors(err, repaired)
	}
	return acted, err
}

// RecreatePod implements rollout.Kind: it deletes the pod, so that the next scale phase creates
// another (CS-12). The update has found room for it by the same numbers that bound any
// other deletion, so marking it first would gain nothing. OpenKruise marks it, which costs one more
// write and one more round. A pod that a hook holds is marked, and waits for the hook.
func (k *Kind) RecreatePod(ctx context.Context, r *rollout.Round, f *rollout.Facts, p *facts.Pod) error {
	r.RequeueAfter(time.Millisecond)
	if lifecycle.BeforeDelete(p.Pod, f.Lifecycle) == lifecycle.Go {
		if err := k.newScaler(r, f).deletePod(ctx, p); err != nil {
			return err
		}
		r.RecordNormal(kruise.SuccessfulUpdatePodReCreateReason, fmt.Sprintf("successfully delete pod %s for update", p.Name))
		return nil
	}
	pod := p.Pod.DeepCopy()
	pod.Labels[kruise.SpecifiedDeleteKey] = "true"
	err := r.CachedClient().Patch(ctx, pod, client.StrategicMergeFrom(p.Pod, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		pod = nil
	}
	r.RecordWrite(ctx, p.Pod, pod, err)
	if err != nil {
		if !rollout.IsConflict(err) {
			r.RecordWarning(kruise.FailedUpdatePodReCreateReason, fmt.Sprintf("failed to mark pod %s for recreation: %v", p.Name, err))
		}
		return fmt.Errorf("marking pod %s for recreation: %w", p.Name, err)
	}
	r.RecordNormal(kruise.SuccessfulUpdatePodReCreateReason, fmt.Sprintf("successfully patch pod %s specified-delete for update", p.Name))
	return nil
}

func (s *scaler) scalePods(ctx context.Context) (acted bool, err error) {
	s.forgetReplaced()
	d := s.k.computeDiff(s.f, s.f.Strategy.MaxSurge, true)
	leaving := slices.ContainsFunc(s.f.Pods, s.f.IsLeaving)
	var plan points.ScaleOutput
	if d.Up > 0 || d.Down > 0 || leaving { // most rounds scale nothing, and need no facts for it
		in, err := s.scaleInput(ctx, d)
		if err != nil {
			return false, err
		}
		plan = s.decideScale(ctx, in, d)
		if acted, err := s.restorePods(ctx, in, plan); acted || err != nil {
			return acted, err
		}
		if ids := s.idsFor(in, plan); len(ids) > 0 {
			s.reportLimit(plan.Holds)
			return false, s.createPods(ctx, ids, plan.CreateCurrent)
		}
	}
	s.reportLimit(plan.Holds)
	if d.Up <= 0 {
		for _, id := range s.memory.toTry() { // no pod needs the claims of these ids any more; the next round removes them
			s.memory.recordAttempt(id, true)
			s.r.RequeueAfter(time.Second)
		}
	}
	return s.applyDeletions(ctx, d, plan)
}

// idsFor are the ids of the pods to create; none if no pod is missing.
func (s *scaler) idsFor(in points.ScaleInput, plan points.ScaleOutput) []string {
	switch {
	case in.Up <= 0:
		return nil
	case in.UpdateHeld:
		return s.freeIDs(in.UpWithoutSurge, plan.Create)
	}
	return s.freeIDs(in.Up, plan.Create)
}

// reportLimit records an event that creation is limited, once for each limit: many rounds may pass
// before the next pod is available.
func (s *scaler) reportLimit(holds []decision.Hold) {
	limit := ""
	for _, h := range holds {
		if h.Reason == kruise.ScaleUpLimitedReason {
			limit = h.Message
		}
	}
	if limit != "" && s.memory.limited != limit {
		s.r.RecordWarning(kruise.ScaleUpLimitedReason, limit)
	}
	s.memory.limited = limit
}

// scaleInput builds the input of rollout/scale.
func (s *scaler) scaleInput(ctx context.Context, d budget.Diff) (points.ScaleInput, error) {
	in := s.f.ScaleInput()
	allowed, whole, err := s.allowedDiff(ctx, d)
	if err != nil {
		return in, err
	}
	if !whole {
		d = allowed
	}
	in.Up, in.UpCurrent, in.UpWithoutSurge, in.UpCurrentWithoutSurge = d.Up, d.UpOld, d.Up, d.UpOld
	if whole {
		in.UpdateHeld, in.UpCurrent = true, max(d.UpOld, allowed.UpOld)
		in.UpWithoutSurge, in.UpCurrentWithoutSurge = allowed.Up, allowed.UpOld
	}
	in.TotalUnavailable, in.Awaited = d.TotalUnavailable, len(s.awaitedIDs())
	in.Down, in.DownCurrent, in.ReadyLimit = d.Down, d.DownOld, d.ReadyLimit
	if in.Needed, in.NeededUpdated = s.countNeeded(d); in.Needed > 0 {
		in.Preparing = s.preparingFacts()
	}
	for _, p := range s.f.Pods {
		planned := s.f.IsLeaving(p)
		if planned {
			in.PlannedDeletes++
		}
		if d.Down > 0 && !planned {
			in.Pods = append(in.Pods, s.f.DeletionFacts(p))
		}
	}
	return in, nil
}

// decideScale evaluates rollout/scale and clamps the answer to the differences.
func (s *scaler) decideScale(ctx context.Context, in points.ScaleInput, d budget.Diff) points.ScaleOutput {
	out := rollout.AskScale(ctx, s.r, s.f, in)
	d.Up, d.UpOld = in.UpWithoutSurge, in.UpCurrentWithoutSurge // a hold lowers them
	return clampScale(out, d, s.f.Strategy.ScaleMaxUnavailable)
}

// clampScale clamps an answer to the differences: never more pods than are missing
// or too many, and never more updated pods than replicas - partition, whatever
// the answer says of revisions.
func clampScale(out points.ScaleOutput, d budget.Diff, maxUnavailable int) points.ScaleOutput {
	out.Create = max(min(out.Create, d.Up, maxUnavailable-d.TotalUnavailable), 0)
	out.CreateCurrent = min(max(out.CreateCurrent, out.Create-max(d.Up-d.UpOld, 0), 0), out.Create)
	out.Delete = max(min(out.Delete, d.Down), 0)
	out.DeleteCurrent = max(min(out.DeleteCurrent, out.Delete, d.DownOld), 0)
	return out
}

// countNeeded is how many pods that prepare their deletion are needed after all, and how many
// of them may be of the update revision: those that the partition has a place for (CS-03).
func (s *scaler) countNeeded(d budget.Diff) (need, updated int) {
	staying := 0
	for _, p := range s.f.Pods {
		if !s.f.IsLeaving(p) {
			staying++
			incrementIf(&updated, p.Facts.Updated)
		}
	}
	need, room := s.f.Replicas-staying, s.f.Replicas-s.f.Strategy.Partition-updated
	if s.t.History.Current.Name == s.t.History.Update.Name { // all pods have the same revision
		room = need
	}
	if s.k.excludesPreparingDelete(s.f.Workload.(*kruise.CloneSet)) { // a restored pod counts again, beside those that wait to be deleted
		need = min(need, d.Up)
	}
	return max(need, 0), max(min(room, need), 0)
}

// preparingFacts are the facts of pods that prepare their deletion although no user requested it.
func (s *scaler) preparingFacts() (out []points.PreparingFacts) {
	marked := false
	if l := s.set.Spec.Lifecycle; l != nil {
		for _, hook := range []*kruise.LifecycleHook{l.PreDelete, l.InPlaceUpdate} {
			marked = marked || hook != nil && hook.MarkPodNotReady
		}
	}
	for _, p := range s.preparingDelete() {
		if !s.f.DeletionAsked(p) {
			out = append(out, points.PreparingFacts{PodFacts: p.Facts, MarkedNotReady: marked})
		}
	}
	return out
}

// restorePods restores pods that prepared their deletion: as many as are needed of those that
// the answer names.
func (s *scaler) restorePods(ctx context.Context, in points.ScaleInput, plan points.ScaleOutput) (acted bool, err error) {
	known := map[string]bool{}
	for _, p := range in.Preparing {
		known[p.Name] = true
	}
	byName := map[string]*facts.Pod{}
	for _, p := range s.f.Pods {
		if known[p.Name] {
			byName[p.Name] = p
		}
	}
	for _, name := range plan.Keep {
		p := byName[name]
		if p == nil || in.Needed <= 0 || (p.Facts.Updated && in.NeededUpdated <= 0) {
			continue
		}
		delete(byName, name)
		if err := s.r.SetState(ctx, s.f, p, kruise.LifecycleStatePreparingNormal, false); err != nil {
			return acted, err
		}
		in.Needed--
		if p.Facts.Updated {
			in.NeededUpdated--
		}
		acted = true
	}
	return acted, nil
}

// applyDeletions deletes pods: those whose hook has released them, those whose deletion was requested,
// and then, if there are none of these, the pods that a scale-in chooses.
func (s *scaler) applyDeletions(ctx context.Context, d budget.Diff, plan points.ScaleOutput) (bool, error) {
	if plan.Planned != points.PlannedPrepared && plan.Planned != points.PlannedAll {
		return false, nil
	}
	victims := s.preparingDelete()
	if plan.Planned == points.PlannedPrepared {
		return s.deletePods(ctx, victims)
	}
	planned := len(victims)
	ready := min(d.ReadyLimit, s.spareAvailable())
	pass := func(p *facts.Pod) bool { // CS-06; by the same measure as the limit, so that no pod counts twice
		if !s.f.IsSteady(p) {
			return true
		}
		ready--
		return ready >= 0
	}
	for _, p := range s.f.Pods {
		if p.State == kruise.LifecycleStatePreparingDelete || !s.f.DeletionAsked(p) {
			continue
		}
		planned++
		if pass(p) {
			victims = append(victims, p)
		}
	}
	if planned == 0 && plan.Delete > 0 {
		for _, p := range s.chooseVictims(plan) {
			if pass(p) {
				victims = append(victims, p)
			}
		}
	}
	return s.deletePods(ctx, victims)
}

// spareAvailable is the number of available pods beyond the required minimum. The limit of
// CS-01 ignores that pods with a requested deletion may be unavailable already. With two of these
// and two ready ones, all four would be deleted where two may be unavailable.
func (s *scaler) spareAvailable() int {
	available := 0
	for _, p := range s.f.Pods {
		incrementIf(&available, s.f.IsSteady(p))
	}
	return max(available-(s.f.Replicas-s.f.Strategy.MaxUnavailable), 0)
}

func (s *scaler) preparingDelete() (out []*facts.Pod) {
	for _, p := range s.f.Pods {
		if p.State == kruise.LifecycleStatePreparingDelete {
			out = append(out, p)
		}
	}
	return out
}

// chooseVictims takes the pods of the old revision first (CS-07).
func (s *scaler) chooseVictims(plan points.ScaleOutput) []*facts.Pod {
	var cands []*facts.Pod
	for _, p := range s.f.Pods {
		if !s.f.IsLeaving(p) {
			cands = append(cands, p)
		}
	}
	var current, update []int
	for i, p := range cands {
		if p.Facts.Updated || s.k.soonUpdated(p) { // as in the differences
			update = append(update, i)
		} else {
			current = append(current, i)
		}
	}
	take := func(n int, group []int) (out []*facts.Pod) {
		if n <= 0 {
			return nil
		}
		for _, i := range scaledown.OrderDeletions(cands, group, plan, s.set.Spec.Template.Spec.TopologySpreadConstraints, s.r.NodeTopology()) {
			if out = append(out, cands[i]); len(out) == n {
				break
			}
		}
		return out
	}
	out := take(plan.DeleteCurrent, current)
	return append(out, take(plan.Delete-len(out), update)...)
}

// deletePods deletes pods and their claims. It sets a pod that a hook holds to PreparingDelete instead.
func (s *scaler) deletePods(ctx context.Context, pods []*facts.Pod) (bool, error) {
	return s.r.LetGo(ctx, s.f, pods, func(p *facts.Pod) error { return s.deletePod(ctx, p) })
}

func (s *scaler) deletePod(ctx context.Context, p *facts.Pod) error {
	if err := s.r.DeletePod(ctx, s.f, p); err != nil {
		return err
	}
	return s.deleteClaims(ctx, p.Labels[kruise.CloneSetInstanceIDKey])
}

func incrementIf(n *int, yes bool) {
	if yes {
		*n++
	}
}
