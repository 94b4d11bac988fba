// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/engine/decision"
)

// change is the status of an object as it is to be written.
type change struct {
	job    *kruise.AdvancedCronJob
	now    metav1.Time
	status *kruise.AdvancedCronJobStatus
	// held is why the run that is due waits; decided is the decision about that run.
	held    *decision.Hold
	decided *decision.Record
}

// newChange computes the status from the jobs that exist now. lastScheduleTime never goes back, even
// if the job of that run is deleted.
func (r *Reconciler) newChange(job *kruise.AdvancedCronJob, children []child, now time.Time) *change {
	c := &change{job: job, now: metav1.NewTime(now).Rfc3339Copy(), status: job.Status.DeepCopy()}
	ours := job.Status.Type == "" || meta.FindStatusCondition(job.Status.Conditions, kruise.AdvancedCronJobScheduleValid) != nil
	c.status.Type = kindOf(job)
	c.status.Active = nil
	for _, child := range children {
		if at := child.scheduledTime(); !at.IsZero() && (c.status.LastScheduleTime == nil || at.After(c.status.LastScheduleTime.Time)) {
			c.status.LastScheduleTime = &metav1.Time{Time: at}
		}
		if child.outcome == active {
			c.status.Active = append(c.status.Active, jobReference(child))
		}
	}
	// OpenKruise forgets the last run when the job of that run is deleted. A run that OpenKruise may have
	// started is not started again.
	if !ours && c.status.LastScheduleTime == nil {
		c.leftOut(c.now.Time, kruise.TakenOverReason, "Runs that were due before this time are the business of the controller that was here before.")
	}
	return c
}

func jobReference(c child) corev1.ObjectReference {
	apiVersion, kind := c.gvk.ToAPIVersionAndKind()
	return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: c.GetNamespace(), Name: c.GetName(), UID: c.GetUID()}
}

// setCondition sets a condition, and reports whether its reason is new.
func (c *change) setCondition(kind string, status metav1.ConditionStatus, reason, text string) bool {
	return condition.SetCondition(c.status, condition.Condition{Type: kind, Status: status, Reason: reason, Message: text}, c.job.Generation, c.now).Reason
}

// leftOut notes the latest run that was left out: its time is that of the condition.
func (c *change) leftOut(due time.Time, reason, text string) {
	condition.RemoveConditions(c.status, kruise.AdvancedCronJobRunLeftOut)
	condition.SetCondition(c.status, condition.Condition{
		Type: kruise.AdvancedCronJobRunLeftOut, Status: metav1.ConditionTrue, Reason: reason, Message: text,
	}, c.job.Generation, metav1.NewTime(due))
}

// removeCondition removes a condition, and reports whether it was there.
func (c *change) removeCondition(kind string) bool {
	return condition.RemoveConditions(c.status, kind)
}

// summarizeSchedule returns what the conditions of package kstatus say of a status that says whether the schedule is valid.
func summarizeSchedule(s *kruise.AdvancedCronJobStatus) kstatus.Summary {
	valid := meta.FindStatusCondition(s.Conditions, kruise.AdvancedCronJobScheduleValid)
	switch {
	case valid == nil:
		return kstatus.NewReconciling(kruise.ProgressingReason, "The schedule has not been read yet.")
	case valid.Status == metav1.ConditionFalse:
		return kstatus.NewStalled(valid.Reason, valid.Message)
	}
	return kstatus.NewReady(valid.Reason, valid.Message)
}

// updateStatus writes the status if it differs from the one that the object was read with, and
// continues with the object as it was written.
func (r *Reconciler) updateStatus(ctx context.Context, c *change) error {
	kstatus.SetConditions(c.status, summarizeSchedule(c.status), c.job.Generation, c.now.Time)
	if equality.Semantic.DeepEqual(&c.job.Status, c.status) {
		return nil
	}
	changed := c.job.DeepCopy()
	changed.Status = *c.status.DeepCopy()
	if err := r.Client.Status().Update(ctx, changed); err != nil {
		return fmt.Errorf("writing the status of AdvancedCronJob %s: %w", client.ObjectKeyFromObject(c.job), err)
	}
	changed.DeepCopyInto(c.job)
	return nil
}

// referenceNames returns the names of active jobs.
func referenceNames(refs []corev1.ObjectReference) []string {
	out := make([]string, 0, len(refs))
	for _, ref := range refs {
		out = append(out, ref.Name)
	}
	slices.Sort(out)
	return out
}
