// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// ReportStatus implements rollout.Kind: it writes the status if it changed, records events of
// the changes, and then clears podsToDelete unless the round failed.
func (k *Kind) ReportStatus(ctx context.Context, r *rollout.Round, f *rollout.Facts, res rollout.Result) error {
	status := k.computeStatus(f)
	reportFailures(f, res, &status)
	r.RequeueAfter(updateProgress(f, &status))
	reportHold(r, f, res, &status)
	r.RequeueAfter(summarizeProgress(r.Workload.(*kruise.CloneSet), &status, f.Now))
	if err := r.WriteStatus(ctx, &status); err != nil {
		return err
	}
	if res.Err != nil {
		return nil
	}
	return k.clearPodsToDelete(ctx, r, f)
}

// TruncateHistory implements rollout.Kind.
func (k *Kind) TruncateHistory(ctx context.Context, r *rollout.Round, f *rollout.Facts, failed bool) error {
	limit := int(ptr.Deref(r.Workload.(*kruise.CloneSet).Spec.RevisionHistoryLimit, 10))
	return r.TruncateHistory(ctx, f, f.Templates.(*rollout.PodTemplates), limit, failed)
}

// reportFailures keeps a condition of each phase that fails, and removes it when the
// phase succeeds, whether Regatta or OpenKruise wrote it.
func reportFailures(f *rollout.Facts, res rollout.Result, s *kruise.CloneSetStatus) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c kruise.CloneSetCondition) bool { return res.PhaseSucceeded(string(c.Type)) })
	for _, failed := range res.FailedPhases() {
		condition.SetCondition(s, condition.Condition{
			Type: failed.Phase, Status: metav1.ConditionTrue, Reason: failed.Phase, Message: failed.Error(),
		}, s.ObservedGeneration, metav1.NewTime(f.Now))
	}
}

// computeStatus counts the active pods (CS-21).
func (k *Kind) computeStatus(f *rollout.Facts) kruise.CloneSetStatus {
	c := f.CountPods()
	set, t := f.Workload.(*kruise.CloneSet), f.Templates.(*rollout.PodTemplates)
	s := kruise.CloneSetStatus{
		ObservedGeneration: set.Generation,
		Replicas:           int32(c.Total), ReadyReplicas: int32(c.Ready), AvailableReplicas: int32(c.Available),
		UpdatedReplicas: int32(c.Updated), UpdatedReadyReplicas: int32(c.UpdatedReady), UpdatedAvailableReplicas: int32(c.UpdatedAvail),
		ExpectedUpdatedReplicas: int32(f.Replicas - f.Strategy.Partition),
		UpdateRevision:          t.UpdateRevision(), CurrentRevision: t.CurrentRevision(),
		CollisionCount: ptr.To(t.History.Collisions), LabelSelector: f.Selector.String(),
		Conditions: slices.Clone(set.Status.Conditions),
	}
	if s.UpdatedReplicas == s.Replicas && s.Replicas == int32(f.Replicas) { // CS-14
		s.CurrentRevision = s.UpdateRevision
	}
	return s
}

func findCondition(s *kruise.CloneSetStatus, t kruise.CloneSetConditionType) *kruise.CloneSetCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// updateProgress keeps the condition Progressing (CS-13), and returns after which time the CloneSet is to
// be reconciled again; 0 for never.
func updateProgress(f *rollout.Facts, s *kruise.CloneSetStatus) time.Duration {
	deadline := f.Workload.(*kruise.CloneSet).Spec.ProgressDeadlineSeconds
	if deadline == nil || *deadline == math.MaxInt32 {
		condition.RemoveConditions(s, string(kruise.CloneSetConditionProgressing))
		return 0
	}
	limit := time.Duration(*deadline) * time.Second
	old := findCondition(s, kruise.CloneSetConditionProgressing)
	c := condition.Condition{Type: string(kruise.CloneSetConditionProgressing), Status: metav1.ConditionTrue}
	want := int32(f.Replicas)
	switch {
	case s.CurrentRevision == s.UpdateRevision && s.Replicas == s.UpdatedReplicas && s.Replicas == s.UpdatedAvailableReplicas && s.Replicas == want:
		c.Reason, c.Message = kruise.CloneSetAvailableReason, "CloneSet is available"
	case f.Strategy.Paused:
		c.Reason, c.Message = kruise.CloneSetProgressPausedReason, "CloneSet is paused"
	case s.ExpectedUpdatedReplicas < want && s.ExpectedUpdatedReplicas <= s.UpdatedAvailableReplicas:
		c.Reason, c.Message = kruise.CloneSetProgressPartitionAvailableReason, "CloneSet has been paused due to partition ready"
	case old != nil && (old.Reason == kruise.CloneSetProgressDeadlineExceededReason || isOverdue(old, limit, f.Now)):
		c.Status, c.Reason = metav1.ConditionFalse, kruise.CloneSetProgressDeadlineExceededReason
		c.Message = fmt.Sprintf(kruise.CloneSetProgressDeadlineExceededMessage, s.UpdateRevision)
	default:
		c.Reason, c.Message = kruise.CloneSetProgressUpdatedReason, kruise.CloneSetProgressUpdatedMessage
	}
	condition.SetCondition(s, c, s.ObservedGeneration, metav1.NewTime(f.Now))
	if c.Reason != kruise.CloneSetProgressUpdatedReason {
		return 0
	}
	return findCondition(s, kruise.CloneSetConditionProgressing).LastUpdateTime.Add(limit + time.Second).Sub(f.Now)
}

// summarizeProgress keeps the conditions of package kstatus, and returns after which time the CloneSet is to be reconciled again; 0 for
// never. Progressing stays ProgressDeadlineExceeded until the CloneSet is available, whatever revisions follow. Here each revision
// has the deadline to itself.
func summarizeProgress(set *kruise.CloneSet, s *kruise.CloneSetStatus, now time.Time) (again time.Duration) {
	view := kinds.ViewCloneSet(set, s)
	was := findCondition(&set.Status, kruise.CloneSetConditionProgressing)
	if view.Deadline != "" && was != nil && was.Reason == kruise.CloneSetProgressDeadlineExceededReason {
		since := now
		if s.UpdateRevision != set.Status.UpdateRevision {
			kstatus.RemoveConditions(s)
		} else {
			since = reconcilingSince(s)
		}
		limit := time.Duration(ptr.Deref(set.Spec.ProgressDeadlineSeconds, 0))*time.Second + time.Second
		if left := since.Add(limit).Sub(now); left > 0 {
			view.Deadline, again = "", left
		}
	}
	kstatus.SetConditions(s, kinds.JudgeRollout(view), set.Generation, now)
	return again
}

// reconcilingSince is since when the CloneSet is reconciling without a hold; zero if it is not.
func reconcilingSince(s *kruise.CloneSetStatus) time.Time {
	c := findCondition(s, kruise.ConditionReconciling)
	if c == nil {
		return time.Time{}
	}
	held := findCondition(s, kruise.CloneSetConditionUpdateHeld)
	if held != nil && held.Status == corev1.ConditionFalse && held.LastTransitionTime.After(c.LastTransitionTime.Time) {
		return held.LastTransitionTime.Time
	}
	return c.LastTransitionTime.Time
}

// isOverdue reports whether a rollout has been under way for longer than it may. The time is
// measured from the start of the rollout, not from the time when the CloneSet became available.
func isOverdue(c *kruise.CloneSetCondition, limit time.Duration, now time.Time) bool {
	return c.Reason == kruise.CloneSetProgressUpdatedReason && c.LastUpdateTime.Add(limit).Before(now)
}

// reportHold keeps the condition UpdateHeld, and records each new reason as one event.
func reportHold(r rollout.Events, f *rollout.Facts, res rollout.Result, s *kruise.CloneSetStatus) {
	old := findCondition(s, kruise.CloneSetConditionUpdateHeld)
	c := res.HoldCondition(old != nil && old.Status == corev1.ConditionTrue)
	if c == nil {
		return
	}
	if condition.SetCondition(s, *c, s.ObservedGeneration, metav1.NewTime(f.Now)).IsNews() {
		res.ReportHold(r, *c)
	}
}

// clearPodsToDelete takes names off podsToDelete whose pods are gone (CS-17).
func (k *Kind) clearPodsToDelete(ctx context.Context, r *rollout.Round, f *rollout.Facts) error {
	set := r.Workload.(*kruise.CloneSet)
	if names := set.Spec.ScaleStrategy.PodsToDelete; len(names) > 0 {
		exists := map[string]bool{}
		for _, p := range k.newScaler(r, f).allPods() {
			exists[p.Name] = true
		}
		kept := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !exists[n] })
		if len(kept) < len(names) {
			before := set.DeepCopy()
			set.Spec.ScaleStrategy.PodsToDelete = kept
			if err := r.CachedClient().Patch(ctx, set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
				return fmt.Errorf("clearing podsToDelete: %w", err)
			}
		}
	}
	return nil
}
