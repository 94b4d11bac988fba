// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// processDueRun starts the run that is due, if there is one (ACJ-04, ACJ-05), and returns when to
// reconcile again.
func (r *Reconciler) processDueRun(ctx context.Context, s cron.Schedule, next *change, children []child, now time.Time) (time.Duration, error) {
	job := next.job
	at, missed := lastDueTime(s, runsDueSince(job, next.status), now)
	if at.IsZero() || childOf(job, at) == nil {
		if next.removeCondition(kruise.AdvancedCronJobRunHeld) {
			return 0, r.updateStatus(ctx, next)
		}
		return 0, nil
	}
	if isPastDeadline(job, at, now) {
		message := fmt.Sprintf("Missed scheduled time to start a job: %s", at.UTC().Format(time.RFC1123Z))
		return 0, r.leaveOut(ctx, next, at, kruise.MissScheduleReason, message)
	}
	in := buildRunInput(next, at, missed, now)
	if err := r.NamespaceReader().CompleteWorkload(ctx, &in.Workload); err != nil {
		return 0, err
	}
	out, record := engine.Decide(ctx, r.Engine, points.RunPoint(), decisionSubject(job), in)
	next.decided = &record
	switch out.PermittedAction(in) {
	case points.SkipRun:
		h := firstHold(out.Holds)
		return 0, r.leaveOut(ctx, next, at, h.Reason, fmt.Sprintf("The run of %s is left out: %s", at.UTC().Format(time.RFC3339), holdMessage(h)))
	case points.WaitRun:
		h := firstHold(out.Holds)
		next.held = &h
		return requeue.EarliestDelay(requeue.DecisionDelay(record, now, requeueTimes(out)...), untilLate(job, at, now)), r.reportHold(ctx, next, h)
	}
	if err := r.startRun(ctx, next, at, children); err != nil {
		return 0, err
	}
	if missed > 0 {
		r.recordMissedRuns(job, at, missed)
	}
	return 0, nil
}

// isPastDeadline reports whether it is too late to start a run.
func isPastDeadline(job *kruise.AdvancedCronJob, at, now time.Time) bool {
	d := job.Spec.StartingDeadlineSeconds
	return d != nil && at.Add(time.Duration(*d)*time.Second).Before(now)
}

// untilLate is how long it is until a run is too late; 0 if it never is.
func untilLate(job *kruise.AdvancedCronJob, at, now time.Time) time.Duration {
	d := job.Spec.StartingDeadlineSeconds
	if d == nil {
		return 0
	}
	return max(at.Add(time.Duration(*d)*time.Second).Sub(now), 0) + time.Millisecond
}

// recordMissedRuns reports earlier runs that were due and did not start. Only the latest run that is due starts.
func (r *Reconciler) recordMissedRuns(job *kruise.AdvancedCronJob, at time.Time, missed int) {
	if missed >= manyMissed {
		r.recordEventOnce(job, corev1.EventTypeWarning, kruise.TooManyMissedTimesReason, fmt.Sprintf("too many missed start times (%d or more) before %s; only the last run was started. Set or decrease .spec.startingDeadlineSeconds or check clock skew", manyMissed, at.UTC().Format(time.RFC3339)))
		return
	}
	r.recordEventOnce(job, corev1.EventTypeWarning, kruise.MissScheduleReason, fmt.Sprintf("Missed scheduled times to start a job: %d before %s; only the last run was started", missed, at.UTC().Format(time.RFC3339)))
}

// leaveOut notes that a run never starts, and reports it once.
func (r *Reconciler) leaveOut(ctx context.Context, next *change, at time.Time, reason, message string) error {
	next.removeCondition(kruise.AdvancedCronJobRunHeld)
	next.leftOut(at, reason, message)
	if err := r.updateStatus(ctx, next); err != nil {
		return err
	}
	event := kruise.AdvancedCronJobRunLeftOut
	if reason == kruise.MissScheduleReason {
		event = reason
	}
	r.Events.Event(next.job, corev1.EventTypeWarning, event, message)
	return nil
}

// reportHold reports why a run waits: once for each reason.
func (r *Reconciler) reportHold(ctx context.Context, next *change, h decision.Hold) error {
	fresh := next.setCondition(kruise.AdvancedCronJobRunHeld, metav1.ConditionTrue, h.Reason, holdMessage(h))
	if err := r.updateStatus(ctx, next); err != nil || !fresh {
		return err
	}
	if h.Rule == "rollout.run.forbid" { // the words of a CronJob
		r.Events.Event(next.job, corev1.EventTypeNormal, kruise.JobAlreadyActiveReason, h.Message)
		return nil
	}
	r.Events.Event(next.job, corev1.EventTypeWarning, kruise.AdvancedCronJobRunHeld, h.Reason+": "+holdMessage(h))
	return nil
}

// firstHold is the hold that the condition reports.
func firstHold(holds []decision.Hold) decision.Hold {
	if len(holds) == 0 {
		return decision.Hold{Rule: decision.RuleEngine, Reason: "Replaced", Message: "The policy that decides says no reason."}
	}
	return slices.MinFunc(holds, func(a, b decision.Hold) int {
		// A hold that skips the run comes first: it says why the run is not started at all.
		order := func(h decision.Hold) []string {
			if h.Run == points.SkipRun {
				return []string{"", h.Rule, h.Message}
			}
			return []string{"later", h.Rule, h.Message}
		}
		return slices.Compare(order(a), order(b))
	})
}

func holdMessage(h decision.Hold) string {
	if h.Rule == "" {
		return h.Message
	}
	return h.Message + " (rule " + h.Rule + ")"
}

func decisionSubject(job *kruise.AdvancedCronJob) decision.Subject {
	return facts.ObjectSubject(kruise.GroupVersion.Group, "AdvancedCronJob", job)
}

func concurrencyPolicy(job *kruise.AdvancedCronJob) string {
	if job.Spec.ConcurrencyPolicy == "" {
		return points.Allow
	}
	return string(job.Spec.ConcurrencyPolicy)
}

// buildRunInput returns the input of the decision.
func buildRunInput(next *change, at time.Time, missed int, now time.Time) points.RunInput {
	job := next.job
	run := points.Run{
		Name: childName(job, at), Kind: string(kindOf(job)), Scheduled: at.UnixNano(), Concurrency: concurrencyPolicy(job), Active: referenceNames(next.status.Active), Missed: missed,
	}
	if d := job.Spec.StartingDeadlineSeconds; d != nil {
		run.Deadline = at.Add(time.Duration(*d) * time.Second).UnixNano()
	}
	return points.RunInput{
		Now: now.UnixNano(), Run: run,
		Workload: points.Workload{Kind: "AdvancedCronJob", Namespace: job.Namespace, Name: job.Name, UID: string(job.UID), Labels: job.Labels, Annotations: facts.VisibleAnnotations(job.Annotations)},
	}
}

// startRun creates the job of a run, and notes that it has. The object is first read again from the
// API server: a run that another process has started is not due any more.
func (r *Reconciler) startRun(ctx context.Context, next *change, at time.Time, children []child) error {
	fresh := &kruise.AdvancedCronJob{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(next.job), fresh); err != nil {
		return fmt.Errorf("reading AdvancedCronJob %s past the cache: %w", client.ObjectKeyFromObject(next.job), err)
	}
	if fresh.ResourceVersion != next.job.ResourceVersion {
		return apierrors.NewConflict(kruise.GroupVersion.WithResource("advancedcronjobs").GroupResource(), next.job.Name, fmt.Errorf("the cache shows an older one"))
	}
	if concurrencyPolicy(next.job) == points.Replace {
		for _, c := range children {
			if c.outcome == active {
				if err := r.deleteJob(ctx, next.job, c); err != nil {
					return err
				}
			}
		}
		next.status.Active = nil
	}
	created, err := r.createJob(ctx, next.job, at)
	if err != nil {
		return err
	}
	next.removeCondition(kruise.AdvancedCronJobRunHeld)
	next.status.LastScheduleTime = &metav1.Time{Time: at}
	if !slices.ContainsFunc(next.status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == created.GetUID() }) && created.outcome == active {
		next.status.Active = append(next.status.Active, jobReference(created))
	}
	return r.updateStatus(ctx, next)
}

// createJob creates the job of a run. A job that exists already was created by an earlier attempt
// whose response was lost.
func (r *Reconciler) createJob(ctx context.Context, job *kruise.AdvancedCronJob, at time.Time) (child, error) {
	o := childOf(job, at)
	err := r.Client.Create(ctx, o)
	if err == nil {
		r.Events.Eventf(job, corev1.EventTypeNormal, kruise.SuccessfulCreateReason, "Created job %s", o.GetName())
		return newChild(o), nil
	}
	if !apierrors.IsAlreadyExists(err) && !reconcile.IsIndeterminate(err) {
		r.Events.Eventf(job, corev1.EventTypeWarning, kruise.FailedCreateReason, "Error creating job: %v", err)
		return child{}, fmt.Errorf("creating %s %s: %w", kindOf(job), o.GetName(), err)
	}
	found := childOf(job, at)
	if read := r.Live.Get(ctx, client.ObjectKeyFromObject(o), found); read != nil {
		return child{}, fmt.Errorf("creating %s %s: %w", kindOf(job), o.GetName(), err)
	}
	if !metav1.IsControlledBy(found, job) {
		r.Events.Eventf(job, corev1.EventTypeWarning, kruise.FailedCreateReason, "Error creating job: %s %s is there already, and is not of this AdvancedCronJob. Delete or rename it.", kindOf(job), o.GetName())
		return child{}, fmt.Errorf("creating %s %s: one that is not of this AdvancedCronJob has the name", kindOf(job), o.GetName())
	}
	return newChild(found), nil
}

func requeueTimes(out points.RunOutput) []string {
	texts := make([]string, len(out.Holds))
	for i, h := range out.Holds {
		texts[i] = h.Until
	}
	return texts
}
