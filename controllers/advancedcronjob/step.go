// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// reconcileJob is one reconcile. The status is written before the history is cleaned, so that the
// record of which runs were started is never lost. It returns when to reconcile again.
func (r *Reconciler) reconcileJob(ctx context.Context, job *kruise.AdvancedCronJob) (time.Duration, error) {
	now := r.Now()
	children, err := r.listChildren(ctx, job)
	if err != nil {
		return 0, err
	}
	next, before := r.newChange(job, children, now), job.Status.Active
	s, err := parseSchedule(job)
	if bad := (*invalid)(nil); errors.As(err, &bad) {
		next.setCondition(kruise.AdvancedCronJobScheduleValid, metav1.ConditionFalse, bad.reason, bad.message)
		r.recordEventOnce(job, corev1.EventTypeWarning, bad.reason, bad.message)
		r.storeExplanation(next, verdict{explain.Held, bad.reason, bad.message}, 0)
		return 0, r.updateStatus(ctx, next)
	}
	next.setCondition(kruise.AdvancedCronJobScheduleValid, metav1.ConditionTrue, kruise.ValidScheduleReason, "Runs start as they are due.")
	if err := r.updateStatus(ctx, next); err != nil {
		return 0, err
	}
	r.recordEndedJobs(job, before, children)
	failed := r.deleteOldJobs(ctx, job, children) // runs do not wait for an old job that cannot be deleted
	if job.Spec.Paused != nil && *job.Spec.Paused {
		r.storeExplanation(next, verdict{explain.Paused, "Paused", "No run starts while spec.paused is true."}, 0)
		if next.removeCondition(kruise.AdvancedCronJobRunHeld) {
			return 0, errors.Join(r.updateStatus(ctx, next), failed)
		}
		return 0, failed
	}
	again, err := r.processDueRun(ctx, s, next, children, now)
	left := untilNext(s, job, next, now)
	if err != nil {
		return requeue.EarliestDelay(again, left), errors.Join(err, failed)
	}
	r.storeExplanation(next, next.currentVerdict(), left)
	return requeue.EarliestDelay(again, left), failed
}

// untilNext is the time until the next run of a schedule; 0 if there is none.
func untilNext(s cron.Schedule, job *kruise.AdvancedCronJob, next *change, now time.Time) time.Duration {
	from := now
	if every, ok := s.(cron.ConstantDelaySchedule); ok { // its times count from the last one
		from = runsDueSince(job, next.status)
		if last, _ := lastDueTime(s, from, now); !last.IsZero() {
			from = last
		}
		return max(every.Next(from).Sub(now), time.Millisecond)
	}
	at := s.Next(from)
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(now), time.Millisecond)
}

// runsDueSince is the time after which runs are due: no run that was due up to then starts any
// more.
func runsDueSince(job *kruise.AdvancedCronJob, status *kruise.AdvancedCronJobStatus) time.Time {
	out := job.CreationTimestamp.Time
	if t := status.LastScheduleTime; t != nil && t.After(out) {
		out = t.Time
	}
	if c := meta.FindStatusCondition(status.Conditions, kruise.AdvancedCronJobRunLeftOut); c != nil && c.LastTransitionTime.After(out) {
		out = c.LastTransitionTime.Time
	}
	return out
}

// recordEndedJobs records the end of each job that was started.
func (r *Reconciler) recordEndedJobs(job *kruise.AdvancedCronJob, before []corev1.ObjectReference, children []child) {
	m := r.memory.GetOrCreate(job)
	was := map[string]bool{}
	for _, ref := range before {
		was[string(ref.UID)] = true
	}
	for _, c := range children {
		if c.outcome != active && was[string(c.GetUID())] && !m.ended[c.GetUID()] {
			m.ended[c.GetUID()] = true
			r.Events.Eventf(job, corev1.EventTypeNormal, kruise.SawCompletedJobReason, "Saw completed job: %s, condition: %s", c.GetName(), c.outcome)
		}
	}
	if len(m.ended) > 2*len(children)+100 {
		clear(m.ended)
	}
}

// deleteOldJobs is ACJ-03: it deletes the oldest jobs beyond the limits. A job that cannot be deleted does not
// prevent the deletion of others.
func (r *Reconciler) deleteOldJobs(ctx context.Context, job *kruise.AdvancedCronJob, children []child) error {
	var errs []error
	for _, outcome := range []string{succeeded, failed} { // in this order, so that the error is the same in each round
		limit := job.Spec.SuccessfulJobsHistoryLimit
		if outcome == failed {
			limit = job.Spec.FailedJobsHistoryLimit
		}
		if limit == nil {
			continue
		}
		var ended []child
		for _, c := range children {
			if c.outcome == outcome && c.GetDeletionTimestamp() == nil {
				ended = append(ended, c)
			}
		}
		slices.SortStableFunc(ended, func(a, b child) int {
			if a.started == nil || b.started == nil {
				return cmp.Compare(boolToInt(a.started != nil), boolToInt(b.started != nil))
			}
			return a.started.Compare(b.started.Time)
		})
		for _, c := range ended[:max(len(ended)-int(*limit), 0)] {
			errs = append(errs, r.deleteJob(ctx, job, c))
		}
	}
	return message.JoinErrors(errs...)
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// deleteJob deletes a job with background propagation, if it still has the UID that was read.
func (r *Reconciler) deleteJob(ctx context.Context, job *kruise.AdvancedCronJob, c child) error {
	uid := c.GetUID()
	err := r.Client.Delete(ctx, c.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil {
		r.Events.Eventf(job, corev1.EventTypeNormal, kruise.SuccessfulDeleteReason, "Deleted job %s", c.GetName())
	}
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting %s %s: %w", c.gvk.Kind, c.GetName(), err)
	}
	return nil
}
