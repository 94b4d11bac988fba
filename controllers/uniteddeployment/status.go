// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/statusthrottle"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// reportStatus writes the status if it changed, and reports what is held (UD-12, UD-15). If only counts change, it writes the status once
// per StatusInterval.
func (t *reconcileRound) reportStatus(ctx context.Context, a allocated, acted error) error {
	t.countReplicas()
	t.updateProgress()
	t.setConditions(acted)
	t.reportHold(a)
	t.updateHold()
	if err := t.reportPlacement(ctx, a); err != nil {
		return err
	}
	if failure.IsReported(acted) && !condition.HasCondition(&t.status, failure.ConditionType) { // in one write with what it leads to
		failure.SetCondition(&t.status, acted, t.d.Generation, t.now)
	}
	known := t.r.memory.GetOrCreate(t.d)
	known.surplus = len(t.surplus)
	kstatus.SetConditions(&t.status, summarizeProgress(t.d, &t.status, known.surplus), t.d.Generation, t.now)
	t.storeExplanation(a)
	if equality.Semantic.DeepEqual(t.d.Status, t.status) {
		return nil
	}
	if wait := statusthrottle.WriteDelay(&t.d.Status, &t.status, t.r.StatusInterval, t.now.Sub(known.written)); wait > 0 {
		t.requeueWithin(wait)
		return nil
	}
	changed := t.d.DeepCopy()
	changed.Status = t.status
	if err := t.r.Client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("writing the status of UnitedDeployment %s: %w", client.ObjectKeyFromObject(t.d), err)
	}
	known.written = t.now
	t.d.ResourceVersion, t.d.Status = changed.ResourceVersion, changed.Status
	return nil
}

// summarizeStored returns what the conditions of package kstatus say of a UnitedDeployment as it is stored, after a round.
func (r *Reconciler) summarizeStored(d *kruise.UnitedDeployment) kstatus.Summary {
	return summarizeProgress(d, &d.Status, r.memory.GetOrCreate(d).surplus)
}

// summarizeProgress returns what the conditions of package kstatus say of a UnitedDeployment with a status and with surplus children.
func summarizeProgress(d *kruise.UnitedDeployment, s *kruise.UnitedDeploymentStatus, surplus int) kstatus.Summary {
	summary := kinds.JudgeRollout(kinds.ViewUnitedDeployment(d, s))
	if surplus > 0 && summary.Type == kruise.ConditionReady {
		return kstatus.NewReconciling(kruise.ProgressingReason, fmt.Sprintf("%s; %d workloads that no subset needs remain", summary.Message, surplus))
	}
	return summary
}

// countReplicas sums up the statuses of the children. A status of an older spec does not count
// for this revision.
func (t *reconcileRound) countReplicas() {
	s := &t.status
	s.ObservedGeneration = t.d.Generation
	s.Replicas, s.ReadyReplicas, s.UpdatedReplicas, s.UpdatedReadyReplicas, s.ReservedPods, s.SubsetStatuses = 0, 0, 0, 0, 0, nil
	s.UpdatedRevision = t.history.Update.Name
	if s.CurrentRevision == "" {
		s.CurrentRevision = t.history.Current.Name
	}
	if t.history.Collisions > 0 || s.CollisionCount != nil {
		s.CollisionCount = ptr.To(t.history.Collisions)
	}
	if selector, err := metav1.LabelSelectorAsSelector(t.d.Spec.Selector); err == nil {
		s.LabelSelector = selector.String()
		if t.strategy == placement.Reserve {
			s.LabelSelector += "," + kruise.UnitedDeploymentReservedPodKey + "=false"
		}
	}
	for _, p := range t.parts {
		out := kruise.UnitedDeploymentSubsetStatus{Name: p.Name, ReservedPods: int32(p.reserved), Partition: p.partition} //nolint:gosec // pods are fewer
		if p.condition != nil {
			out.Conditions = []kruise.UnitedDeploymentSubsetCondition{*p.condition}
		}
		if c := p.child; c != nil {
			out.Replicas, out.ReadyReplicas = c.pods, c.ready
			s.Replicas += c.pods
			s.ReadyReplicas += c.ready
			if c.observed && c.GetLabels()[kruise.ControllerRevisionHashKey] == t.history.Update.Name {
				s.UpdatedReplicas += c.updated
				s.UpdatedReadyReplicas += t.updatedReady(p)
			}
		}
		s.ReservedPods += out.ReservedPods
		s.SubsetStatuses = append(s.SubsetStatuses, out)
	}
	s.Replicas -= s.ReservedPods
}

func (t *reconcileRound) updatedReady(p *subsetState) (n int32) {
	if !p.child.countReady {
		return p.child.updatedReady
	}
	for _, pod := range p.pods {
		if t.isUpdated(pod) && isReady(pod) {
			n++
		}
	}
	return n
}

// updateProgress sets the condition that reports whether all pods are of the updated revision (UD-12).
func (t *reconcileRound) updateProgress() {
	s := &t.status
	observed := len(t.surplus) == 0
	for _, p := range t.parts {
		observed = observed && p.child != nil && p.child.observed && p.child.GetLabels()[kruise.ControllerRevisionHashKey] == s.UpdatedRevision
	}
	if observed && s.UpdatedReadyReplicas >= s.Replicas {
		s.CurrentRevision = s.UpdatedRevision
	}
	if s.CurrentRevision == s.UpdatedRevision {
		t.setCondition(kruise.UnitedDeploymentUpdated, metav1.ConditionTrue, kruise.UnitedDeploymentRevisionUpdatedReason, "updated to revision "+s.UpdatedRevision)
		return
	}
	t.setCondition(kruise.UnitedDeploymentUpdated, metav1.ConditionFalse, kruise.UnitedDeploymentRevisionUpdatingReason, "updating to revision "+s.UpdatedRevision)
}

func (t *reconcileRound) setConditions(acted error) {
	t.reportActs(acted)
	failure := ""
	for _, p := range t.parts {
		if p.child != nil && p.child.failure != "" {
			failure = fmt.Sprintf("subset %s: %s", p.Name, p.child.failure)
			break
		}
	}
	if failure == "" {
		t.removeCondition(kruise.UnitedDeploymentSubsetFailure)
		return
	}
	t.setCondition(kruise.UnitedDeploymentSubsetFailure, metav1.ConditionTrue, kruise.UnitedDeploymentErrorReason, failure)
}

// reportActs sets the conditions that report failed writes.
func (t *reconcileRound) reportActs(acted error) {
	report := func(kind kruise.UnitedDeploymentConditionType, err error, failed bool) {
		if failed {
			t.setCondition(kind, metav1.ConditionFalse, kruise.UnitedDeploymentErrorReason, err.Error())
			return
		}
		t.setCondition(kind, metav1.ConditionTrue, "", "")
	}
	var provision provisionError
	var update updateError
	report(kruise.UnitedDeploymentSubsetProvisioned, &provision, errors.As(acted, &provision))
	report(kruise.UnitedDeploymentSubsetUpdated, &update, errors.As(acted, &update))
}

// reportHold reports the hold that leaves subsets as they are, with one event for each new reason.
func (t *reconcileRound) reportHold(a allocated) {
	h := a.held
	if h != nil && h.Rule == ineffective { // OpenKruise's event
		t.r.recordEventOnce(t.d, kruise.FailedSpecifySubsetReplicasReason, fmt.Sprintf(kruise.SpecifySubsetReplicasMessage, h.Message))
	} else {
		t.r.resetRecordedEvent(t.d, kruise.FailedSpecifySubsetReplicasReason)
	}
	for _, p := range t.parts {
		if h == nil {
			h = a.out.HeldAt(p.Name)
		}
	}
	if h == nil {
		t.removeCondition(kruise.UnitedDeploymentAllocationHeld)
		t.r.resetRecordedEvent(t.d, string(kruise.UnitedDeploymentAllocationHeld))
		return
	}
	text := h.Message
	if h.Target != "" {
		text = fmt.Sprintf("Subset %s: %s", h.Target, text)
	}
	if h.Rule != "" {
		text += " (rule " + h.Rule + ")"
	}
	t.setCondition(kruise.UnitedDeploymentAllocationHeld, metav1.ConditionTrue, h.Reason, text)
	if h.Rule != ineffective {
		t.r.recordEventOnce(t.d, string(kruise.UnitedDeploymentAllocationHeld), h.Reason+": "+text)
	}
}

// setCondition sets a condition. Its time is that of the last change of its status. For the condition of an update it is also that
// of the last change of the revision.
func (t *reconcileRound) setCondition(kind kruise.UnitedDeploymentConditionType, status metav1.ConditionStatus, reason, text string) {
	i := slices.IndexFunc(t.status.Conditions, func(c kruise.UnitedDeploymentCondition) bool { return c.Type == kind })
	if i >= 0 && kind == kruise.UnitedDeploymentUpdated && t.status.Conditions[i].Message != text {
		t.status.Conditions[i].Status = corev1.ConditionUnknown // so that the time moves
	}
	condition.SetCondition(&t.status, condition.Condition{Type: string(kind), Status: status, Reason: reason, Message: text},
		t.d.Generation, metav1.NewTime(t.now).Rfc3339Copy())
}

func (t *reconcileRound) removeCondition(kind kruise.UnitedDeploymentConditionType) {
	condition.RemoveConditions(&t.status, string(kind))
}
