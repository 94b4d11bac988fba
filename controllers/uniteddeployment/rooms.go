// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// findUnschedulable finds the subsets that have no room for more pods.
func (t *reconcileRound) findUnschedulable(ctx context.Context) error {
	for _, p := range t.parts {
		switch {
		case p.child == nil && t.strategy == placement.Reserve && p.condition == nil && t.hasChildren():
			t.markSubset(p, metav1.ConditionFalse, kruise.UnitedDeploymentSubsetCreatedReason, "the subset is new")
		case p.child == nil:
		case t.strategy == placement.Adaptive:
			t.assessAdaptive(p)
		case t.strategy == placement.Reserve:
			if err := t.reservePods(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasChildren reports whether any subset has a child.
func (t *reconcileRound) hasChildren() bool {
	for _, p := range t.parts {
		if p.child != nil {
			return true
		}
	}
	return false
}

// markSubset sets the condition of a subset. Its time is that of the last change of its status. A condition that stays True is left as
// it is.
func (t *reconcileRound) markSubset(p *subsetState, status metav1.ConditionStatus, reason, text string) {
	var conditions []kruise.UnitedDeploymentSubsetCondition
	if was := p.condition; was != nil {
		if was.Status == corev1.ConditionTrue && status == metav1.ConditionTrue {
			return
		}
		conditions = append(conditions, *was)
	}
	condition.SetCondition(&conditions, condition.Condition{
		Type: string(kruise.UnitedDeploymentSubsetSchedulable), Status: status, Reason: reason, Message: text,
	}, t.d.Generation, metav1.NewTime(t.now).Rfc3339Copy())
	p.condition = &conditions[0]
}

// recordMarks writes the conditions of subsets that have changed, before the round acts: the pods that found
// no node, from which a condition was derived, may be deleted by that act. Subsets that are new in the status are written later, with the
// rest of the status.
func (t *reconcileRound) recordMarks(ctx context.Context) error {
	changed, differ := t.d.DeepCopy(), false
	marks := map[string]kruise.UnitedDeploymentSubsetCondition{}
	for _, p := range t.parts {
		if p.condition == nil {
			continue
		}
		marks[p.Name] = *p.condition
		for i := range changed.Status.SubsetStatuses {
			s := &changed.Status.SubsetStatuses[i]
			if was := schedulableCondition(s); s.Name == p.Name && (was == nil || was.Status != p.condition.Status) {
				s.Conditions, differ = []kruise.UnitedDeploymentSubsetCondition{*p.condition}, true
			}
		}
	}
	t.r.memory.GetOrCreate(t.d).marks = marks
	if !differ {
		return nil
	}
	if err := t.r.Client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("writing which subsets of UnitedDeployment %s have room: %w", client.ObjectKeyFromObject(t.d), err)
	}
	t.d.ResourceVersion, t.d.Status = changed.ResourceVersion, changed.Status
	return nil
}

// recallMark restores the condition of a subset that was last written, if the cache shows an older one.
func (t *reconcileRound) recallMark(p *subsetState) {
	mark, ok := t.r.memory.GetOrCreate(t.d).marks[p.Name]
	if ok && (p.condition == nil || p.condition.LastTransitionTime.Before(&mark.LastTransitionTime)) {
		p.condition = &mark
	}
}

// assessAdaptive applies UD-07: after its pods found no node in time, a subset counts as without room for a while.
func (t *reconcileRound) assessAdaptive(p *subsetState) {
	if p.marked {
		if left := p.condition.LastTransitionTime.Add(t.unschedulableDuration()).Sub(t.now); left > 0 {
			p.unschedulable = true
			t.requeueWithin(left)
			return
		}
	}
	stuck := 0
	for _, pod := range p.pods {
		is, again := subset.IsUnschedulable(pod, t.criticalDuration(), t.now)
		if t.requeueWithin(again); is {
			stuck++
		}
	}
	switch {
	case stuck > 0:
		p.unschedulable = true
		t.markSubset(p, metav1.ConditionFalse, kruise.UnitedDeploymentSubsetRescheduleReason, fmt.Sprintf("timeout pods found: %d found no node in %s", stuck, t.criticalDuration()))
		t.requeueWithin(t.unschedulableDuration())
	case p.marked:
		t.markSubset(p, metav1.ConditionTrue, kruise.UnitedDeploymentSubsetRecoverReason, "unschedulable duration expired")
	}
}

// reservePods applies UD-06: it finds the pods that have replacements in other subsets, and labels them.
func (t *reconcileRound) reservePods(ctx context.Context, p *subsetState) error {
	old, waits := 0, false
	for _, pod := range p.pods {
		if !t.isUpdated(pod) {
			old++
			continue
		}
		stuck, _ := subset.IsUnschedulable(pod, t.criticalDuration(), t.now)
		waits = waits || stuck
	}
	var acts []func() error
	for _, pod := range p.pods {
		said, labelled := pod.Labels[kruise.UnitedDeploymentReservedPodKey]
		is := t.isReserved(p, pod, said, labelled, waits && old > int(t.partitionOf(p)))
		if is {
			p.reserved++
		}
		if want := strconv.FormatBool(is); said != want {
			acts = append(acts, func() error { return t.labelReserved(ctx, pod, want) })
		}
	}
	if err := batch.RunParallel(t.r.writes, acts); err != nil {
		return err
	}
	switch {
	case p.reserved > 0:
		p.unschedulable = true
		t.markSubset(p, metav1.ConditionFalse, kruise.UnitedDeploymentSubsetRescheduleReason, "reserved pods found")
	case p.marked && len(p.pods) < p.currentReplicas(): // the cache does not show its new pods yet
		t.requeueWithin(time.Second)
	case p.marked:
		t.markSubset(p, metav1.ConditionTrue, kruise.UnitedDeploymentSubsetRecoverReason, "no reserved pods")
		t.requeueWithin(requeue.Soon) // the replacements are deleted
	}
	return nil
}

func (t *reconcileRound) isUpdated(pod *corev1.Pod) bool {
	return pod.Labels[kruise.ControllerRevisionHashKey] == t.history.Update.Name
}

// isReserved reports whether a pod has a replacement in another subset. A pod of an old revision has one if its update
// has waited for room for too long.
func (t *reconcileRound) isReserved(p *subsetState, pod *corev1.Pod, said string, labelled, waits bool) bool {
	switch {
	case said == "true":
		if !isReady(pod) || !t.isUpdated(pod) {
			return true
		}
		left := readyAt(pod).Add(t.unschedulableDuration()).Sub(t.now)
		t.requeueWithin(left)
		return left > 0
	case p.marked && !labelled:
		if isReady(pod) && t.isUpdated(pod) { // the pod was ready before any pod was labelled
			return readyAt(pod).After(p.condition.LastTransitionTime.Time)
		}
		return true
	case t.isUpdated(pod):
		stuck, again := subset.IsUnschedulable(pod, t.criticalDuration(), t.now)
		t.requeueWithin(again)
		return stuck
	case !waits:
		return false
	}
	left := t.updatingSince().Add(t.criticalDuration()).Sub(t.now)
	if t.requeueWithin(left); left > 0 {
		return false
	}
	p.late++
	return true
}

// updatingSince is when the update to the updated revision began.
func (t *reconcileRound) updatingSince() time.Time {
	for _, c := range t.d.Status.Conditions {
		if c.Type == kruise.UnitedDeploymentUpdated && c.Status == corev1.ConditionFalse {
			return c.LastTransitionTime.Time
		}
	}
	return t.now
}

func (t *reconcileRound) labelReserved(ctx context.Context, pod *corev1.Pod, value string) error {
	changed := pod.DeepCopy()
	metav1.SetMetaDataLabel(&changed.ObjectMeta, kruise.UnitedDeploymentReservedPodKey, value)
	if err := t.r.Client.Patch(ctx, changed, client.MergeFrom(pod)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling pod %s: %w", pod.Name, err)
	}
	return nil
}

// markGrownSubset marks a subset again that had just recovered and gets more pods (UD-06).
func (t *reconcileRound) markGrownSubset(p *subsetState) {
	if t.strategy == placement.Reserve && p.child != nil && p.marked && !p.unschedulable && int(p.replicas) > p.currentReplicas() {
		p.condition = nil // so that the time moves
		t.markSubset(p, metav1.ConditionFalse, kruise.UnitedDeploymentSubsetRescheduleReason, "subset just recovered scaled up")
		t.requeueWithin(time.Second)
	}
}
