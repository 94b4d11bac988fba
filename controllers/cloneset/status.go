package cloneset

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// report writes the status if it changed, and the events of what changed.
func (r *Reconciler) report(ctx context.Context, w *world, acted error) error {
	status := w.status()
	for _, failed := range failures(acted) {
		setCondition(&status, kruise.CloneSetCondition{
			Type: failed.condition, Status: corev1.ConditionTrue, Reason: string(failed.condition), Message: oneLine(failed.Error()),
		}, w.now)
	}
	w.progress(&status)
	r.reportHold(w, &status)
	if !w.memory.status.unknown && equality.Semantic.DeepEqual(status, w.set.Status) {
		return nil
	}
	patch, err := statusPatch(w.set, status)
	if err != nil {
		return err
	}
	err = r.client.Status().Patch(ctx, w.set, client.RawPatch(types.MergePatchType, patch))
	w.memory.status.wrote(w.set, err)
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	return nil
}

// failures are the phases that failed, but not those that only lost a race.
func failures(err error) []*phaseError {
	switch e := err.(type) {
	case nil:
		return nil
	case *phaseError:
		if conflict(e) {
			return nil
		}
		return []*phaseError{e}
	case interface{ Unwrap() []error }:
		var out []*phaseError
		for _, one := range e.Unwrap() {
			out = append(out, failures(one)...)
		}
		return out
	}
	return nil
}

// statusPatch writes the whole status and takes off what it has no more. A
// difference would leave out counts that are zero, which the schema requires.
func statusPatch(set *kruise.CloneSet, status kruise.CloneSetStatus) ([]byte, error) {
	next, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, fmt.Errorf("encoding status: %w", err)
	}
	last, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&set.Status)
	if err != nil {
		return nil, fmt.Errorf("encoding status: %w", err)
	}
	for k := range last {
		if _, ok := next[k]; !ok {
			next[k] = nil
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": set.UID}, "status": next})
}

// status counts the active pods (CS-21).
func (w *world) status() kruise.CloneSetStatus {
	c := w.counts()
	old := w.set.Status
	s := kruise.CloneSetStatus{
		ObservedGeneration: w.set.Generation,
		Replicas:           int32(c.Total), ReadyReplicas: int32(c.Ready), AvailableReplicas: int32(c.Available),
		UpdatedReplicas: int32(c.Updated), UpdatedReadyReplicas: int32(c.UpdatedReady), UpdatedAvailableReplicas: int32(c.UpdatedAvail),
		ExpectedUpdatedReplicas: int32(replicas(w.set) - w.strategy.Partition),
		UpdateRevision:          w.history.Update.Name, CurrentRevision: w.history.Current.Name,
		CollisionCount: ptr.To(w.history.Collisions), LabelSelector: w.selector,
		Conditions: slices.Clone(old.Conditions),
	}
	if s.UpdatedReplicas == s.Replicas && s.Replicas == int32(replicas(w.set)) { // CS-14
		s.CurrentRevision = s.UpdateRevision
	}
	return s
}

// setCondition writes a condition only when its status or its reason changes,
// so that its time is that of the last change (CS-21); then
// it says so. A message alone is brought up to date without its times.
func setCondition(s *kruise.CloneSetStatus, c kruise.CloneSetCondition, now time.Time) (changed bool) {
	c.LastUpdateTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	for i := range s.Conditions {
		old := &s.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status && old.Reason == c.Reason {
			old.Message = c.Message
			return false
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		*old = c
		return true
	}
	s.Conditions = append(s.Conditions, c)
	return true
}

func condition(s *kruise.CloneSetStatus, t kruise.CloneSetConditionType) *kruise.CloneSetCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// progress keeps the condition Progressing (CS-13).
func (w *world) progress(s *kruise.CloneSetStatus) {
	deadline := w.set.Spec.ProgressDeadlineSeconds
	if deadline == nil || *deadline == math.MaxInt32 {
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c kruise.CloneSetCondition) bool {
			return c.Type == kruise.CloneSetConditionProgressing
		})
		return
	}
	limit := time.Duration(*deadline) * time.Second
	old := condition(s, kruise.CloneSetConditionProgressing)
	c := kruise.CloneSetCondition{Type: kruise.CloneSetConditionProgressing, Status: corev1.ConditionTrue}
	want := int32(replicas(w.set))
	switch {
	case s.CurrentRevision == s.UpdateRevision && s.Replicas == s.UpdatedReplicas && s.Replicas == s.UpdatedAvailableReplicas && s.Replicas == want:
		c.Reason, c.Message = kruise.CloneSetAvailableReason, "CloneSet is available"
	case w.strategy.Paused:
		c.Reason, c.Message = kruise.CloneSetProgressPausedReason, "CloneSet is paused"
	case s.ExpectedUpdatedReplicas < want && s.ExpectedUpdatedReplicas <= s.UpdatedAvailableReplicas:
		c.Reason, c.Message = kruise.CloneSetProgressPartitionAvailableReason, "CloneSet has been paused due to partition ready"
	case old != nil && (old.Reason == kruise.CloneSetProgressDeadlineExceededReason || overdue(old, limit, w.now)):
		c.Status, c.Reason = corev1.ConditionFalse, kruise.CloneSetProgressDeadlineExceededReason
		c.Message = fmt.Sprintf(kruise.CloneSetProgressDeadlineExceededMessage, s.UpdateRevision)
	default:
		c.Reason, c.Message = kruise.CloneSetProgressUpdatedReason, kruise.CloneSetProgressUpdatedMessage
	}
	setCondition(s, c, w.now)
	if c.Reason == kruise.CloneSetProgressUpdatedReason {
		w.again.in(condition(s, kruise.CloneSetConditionProgressing).LastUpdateTime.Add(limit + time.Second).Sub(w.now))
	}
}

// overdue says whether a rollout has been under way for longer than it may. The
// clock starts with it: what was available for a day has not been late for a day.
func overdue(c *kruise.CloneSetCondition, limit time.Duration, now time.Time) bool {
	return c.Reason == kruise.CloneSetProgressUpdatedReason && c.LastUpdateTime.Add(limit).Before(now)
}

// tidy takes names off podsToDelete whose pods are gone (CS-17) and truncates
// the history.
func (r *Reconciler) tidy(ctx context.Context, w *world) error {
	if names := w.set.Spec.ScaleStrategy.PodsToDelete; len(names) > 0 {
		exists := map[string]bool{}
		for _, p := range slices.Concat(w.raw, w.gone) {
			exists[p.Name] = true
		}
		kept := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !exists[n] })
		if len(kept) < len(names) {
			before := w.set.DeepCopy()
			w.set.Spec.ScaleStrategy.PodsToDelete = kept
			if err := r.client.Patch(ctx, w.set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
				return fmt.Errorf("clearing podsToDelete: %w", err)
			}
		}
	}
	limit := 10
	if l := w.set.Spec.RevisionHistoryLimit; l != nil {
		limit = int(*l)
	}
	used := map[string]bool{}
	for _, p := range slices.Concat(w.raw, w.gone) {
		used[revision.Short(p.Labels[revisionLabel])] = true
	}
	live := func(rev *appsv1.ControllerRevision) bool { return used[revision.Short(rev.Name)] }
	maps.DeleteFunc(w.memory.revisions, func(name string, own ownRevision) bool {
		return name != w.history.Update.Name && !live(own.ControllerRevision)
	})
	return w.history.Truncate(ctx, r.client, limit, live)
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "; ") }
