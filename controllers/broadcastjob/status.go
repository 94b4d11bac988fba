// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// change is the status of a job as it is to be, and the events that go with it: they are
// recorded once it is written, so that each is recorded once.
type change struct {
	job    *kruise.BroadcastJob
	now    metav1.Time
	status kruise.BroadcastJobStatus
	events []recorded
	// held is why waiting nodes get no pod now; decided is the decision about them.
	held    *placement.Hold
	decided *decision.Record
}

type recorded struct{ kind, reason, message string }

func (c *change) addEvent(kind, reason, message string) {
	c.events = append(c.events, recorded{kind, reason, message})
}

// newChange computes the status from the current state. The status of a job that has failed stays as it was.
func (r *Reconciler) newChange(s *state) *change {
	c := &change{job: s.job, now: metav1.NewTime(s.now).Rfc3339Copy(), status: *s.job.Status.DeepCopy()}
	if c.status.Phase == kruise.BroadcastJobPhaseFailed {
		return c
	}
	if c.status.StartTime == nil {
		c.status.StartTime = &c.now
	}
	if c.status.Phase == "" || c.status.Phase == kruise.BroadcastJobPhaseCompleted { // the policy may have become Never
		c.status.Phase = kruise.BroadcastJobPhaseRunning
	}
	count := func(pods []*corev1.Pod) int32 { return int32(len(pods)) } //nolint:gosec // as many as there are pods
	c.status.Active, c.status.Succeeded, c.status.Failed = count(s.active), count(s.succeeded), count(s.failed)
	c.status.Desired = int32(s.counts.Desired) //nolint:gosec // as many as there are nodes
	return c
}

// setCondition sets a condition to True, and reports whether its reason is new.
func (c *change) setCondition(t kruise.JobConditionType, reason, message string) bool {
	return jobcondition.SetTrue(&c.status.Conditions, t, reason, message, c.now)
}

// removeCondition removes a condition, and reports whether it was there.
func (c *change) removeCondition(t kruise.JobConditionType) bool {
	return condition.RemoveConditions(&c.status, string(t))
}

// setEndCondition sets a condition that ends the job.
func (c *change) setEndCondition(t kruise.JobConditionType, message string) {
	c.setCondition(t, string(t), message)
	if c.status.CompletionTime == nil && !neverCompletes(c.job) {
		c.status.CompletionTime = &c.now
	}
}

// summarizeJob returns what the conditions of package kstatus say of a job as it is stored.
func summarizeJob(job *kruise.BroadcastJob) kstatus.Summary {
	return summarizeProgress(job, &job.Status)
}

// summarizeProgress returns what the conditions of package kstatus say of a job with a status.
func summarizeProgress(job *kruise.BroadcastJob, s *kruise.BroadcastJobStatus) kstatus.Summary {
	text := fmt.Sprintf("%d of %d pods have succeeded, %d have failed, and %d are active", s.Succeeded, s.Desired, s.Failed, s.Active)
	for _, t := range []kruise.JobConditionType{
		kruise.BroadcastJobFailed, kruise.BroadcastJobComplete, kruise.BroadcastJobPausedByFailure, kruise.BroadcastJobHeld, noNodeFits, podsStuckTerminating,
	} {
		is := jobcondition.Find(s.Conditions, t)
		if is == nil || is.Status != corev1.ConditionTrue {
			continue
		}
		switch t {
		case kruise.BroadcastJobComplete:
			return kstatus.NewReady(string(t), is.Message)
		case kruise.BroadcastJobFailed:
			return kstatus.NewStalled(string(t), is.Message)
		}
		return kstatus.NewReconciling(string(t), is.Message)
	}
	switch {
	case s.Phase == kruise.BroadcastJobPhasePaused || job.Spec.Paused:
		return kstatus.NewReconciling(kruise.BroadcastJobPausedReason, text+"; spec.paused is true")
	case neverCompletes(job) && s.Active == 0 && s.Succeeded+s.Failed >= s.Desired:
		return kstatus.NewReady(kruise.BroadcastJobNodesDoneReason, text+"; the job keeps on for nodes to come")
	}
	return kstatus.NewReconciling(kruise.ProgressingReason, text)
}

// updateStatus writes the status if it differs from the one that the job was read with, and records
// the events. If the write conflicts with a later one, the status is computed again in the next
// reconcile.
func (r *Reconciler) updateStatus(ctx context.Context, c *change) error {
	kstatus.SetConditions(&c.status, summarizeProgress(c.job, &c.status), c.job.Generation, c.now.Time)
	if !equality.Semantic.DeepEqual(c.job.Status, c.status) {
		changed := c.job.DeepCopy()
		changed.Status = c.status
		// A patch would leave out the zeros of a status that has none yet.
		if err := r.Client.Status().Update(ctx, changed); err != nil {
			return fmt.Errorf("writing the status of BroadcastJob %s: %w", client.ObjectKeyFromObject(c.job), err)
		}
		changed.DeepCopyInto(c.job) // the reconcile may continue, and fail
	}
	for _, e := range c.events {
		r.Events.Event(c.job, e.kind, e.reason, e.message)
	}
	r.storeExplanation(c)
	return nil
}
