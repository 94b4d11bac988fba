// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// isFinished reports whether a job has ended. A job with completion policy Never does not end.
func isFinished(job *kruise.BroadcastJob) bool {
	return !neverCompletes(job) && (jobcondition.IsTrue(job.Status.Conditions, kruise.BroadcastJobComplete) || jobcondition.IsTrue(job.Status.Conditions, kruise.BroadcastJobFailed))
}

// noNodeFits is the type of the condition of a job that has no node, and its reason.
const noNodeFits = "NoNodeFits"

// lookAgain is how long to wait for a cache that does not show the controller's own writes.
const lookAgain = 10 * time.Second

func neverCompletes(job *kruise.BroadcastJob) bool {
	return job.Spec.CompletionPolicy.Type == kruise.NeverCompletionPolicyType
}

// reconcileJob is BJ-04. It returns when to reconcile again; 0 for when something changes.
func (r *Reconciler) reconcileJob(ctx context.Context, job *kruise.BroadcastJob) (time.Duration, error) {
	if isFinished(job) {
		r.storeExplanation(&change{job: job, now: metav1.NewTime(r.Now()), status: job.Status})
		again, failed := r.deleteUnfinishedPods(ctx, job)
		left, err := r.deleteExpired(ctx, job)
		return requeue.EarliestDelay(left, again), errors.Join(failed, err)
	}
	m := r.memory.GetOrCreate(job)
	s, current, err := r.loadState(ctx, job, m)
	if err != nil {
		return 0, err
	}
	if !current {
		return lookAgain, nil
	}
	next := r.newChange(s)
	if job.Status.Phase == kruise.BroadcastJobPhaseFailed {
		again, failed := r.deleteUnfinishedPods(ctx, job)
		return again, errors.Join(failed, r.updateStatus(ctx, next))
	}
	if err := r.reconcilePause(ctx, s, next); err != nil {
		return 0, err
	}
	if next.status.Phase == kruise.BroadcastJobPhasePaused {
		next.removeCondition(podsStuckTerminating) // it is not what the job waits for
		return 0, r.updateStatus(ctx, next)
	}
	left, over := timeToDeadline(s, next)
	switch {
	case len(s.failed) > 0 && failFast(job):
		return r.failJob(ctx, s, next, kruise.BroadcastJobFailedPodReason, kruise.BroadcastJobFailedPodReason)
	case over:
		return r.failJob(ctx, s, next, kruise.BroadcastJobDeadlineExceededReason,
			fmt.Sprintf(kruise.BroadcastJobDeadlineExceededMessage, job.Namespace, job.Name))
	}
	d := r.decideNodes(ctx, s, next)
	r.reportNoNode(s, next)
	left = requeue.EarliestDelay(left, r.reportStuckPods(s, next))
	if isComplete(s) {
		return r.completeJob(ctx, s, next)
	}
	again, err := r.syncPods(ctx, s, next, m, d)
	if written := r.updateStatus(ctx, next); err == nil {
		err = written
	}
	return requeue.EarliestDelay(left, again), err
}

// reportNoNode reports that no node fits a job. Without the report the job would wait silently.
func (r *Reconciler) reportNoNode(s *state, next *change) {
	if s.counts.Desired > 0 {
		next.removeCondition(noNodeFits)
		return
	}
	message := "No node fits the template of the job, so it has no pod. It goes on when a node does."
	if next.held != nil || next.decided != nil {
		message = "Policies deny the job each node that fits its template, so it has no pod. It goes on when they let one be."
	}
	if next.setCondition(noNodeFits, noNodeFits, message) {
		next.addEvent(corev1.EventTypeWarning, noNodeFits, message)
	}
}

func failFast(job *kruise.BroadcastJob) bool {
	t := job.Spec.FailurePolicy.Type
	return t == "" || t == kruise.FailurePolicyTypeFailFast
}

// timeToDeadline is how long a job may go on, 0 if without a limit, and whether that time is over.
func timeToDeadline(s *state, next *change) (left time.Duration, over bool) {
	seconds := s.job.Spec.CompletionPolicy.ActiveDeadlineSeconds
	if neverCompletes(s.job) || seconds == nil {
		return 0, false
	}
	left = next.status.StartTime.Add(time.Duration(*seconds) * time.Second).Sub(s.now)
	return max(left, 0), left <= 0
}

// isComplete is BJ-06. A node whose pod terminates before it has ended is not done: the pod is created
// again.
func isComplete(s *state) bool {
	return !neverCompletes(s.job) && s.counts.Desired > 0 && s.counts.Waiting == 0 && s.counts.Active == 0 && len(s.unfit) == 0
}

func (r *Reconciler) completeJob(ctx context.Context, s *state, next *change) (time.Duration, error) {
	next.setEndCondition(kruise.BroadcastJobComplete, fmt.Sprintf(kruise.BroadcastJobCompletedMessage, next.status.Succeeded, next.status.Failed))
	next.status.Phase = kruise.BroadcastJobPhaseCompleted
	next.addEvent(corev1.EventTypeNormal, kruise.BroadcastJobCompleteReason, fmt.Sprintf("Job %s/%s is completed, %d pods succeeded, %d pods failed", s.job.Namespace, s.job.Name, next.status.Succeeded, next.status.Failed))
	return r.finishJob(ctx, next)
}

// failJob ends a job that cannot succeed. Its active pods are deleted, and have failed.
func (r *Reconciler) failJob(ctx context.Context, s *state, next *change, reason, message string) (time.Duration, error) {
	stopped := int32(len(s.active)) //nolint:gosec // as many as there are pods
	next.status.Failed += stopped
	next.status.Active -= stopped
	next.setEndCondition(kruise.BroadcastJobFailed, message)
	next.status.Phase = kruise.BroadcastJobPhaseFailed
	next.addEvent(corev1.EventTypeWarning, reason, fmt.Sprintf("%s: %d pods succeeded, %d pods failed", message, next.status.Succeeded, next.status.Failed))
	return r.finishJob(ctx, next)
}

// finishJob writes the end of a job, then deletes the pods that have not ended, and says when the job is deleted.
// A job whose pods were deleted first would run them again if its end could not be written.
func (r *Reconciler) finishJob(ctx context.Context, next *change) (time.Duration, error) {
	next.removeCondition(noNodeFits)
	next.removeCondition(podsStuckTerminating)
	next.removeCondition(kruise.BroadcastJobHeld)
	next.removeCondition(kruise.BroadcastJobPausedByFailure)
	if err := r.updateStatus(ctx, next); err != nil {
		return 0, err
	}
	again, err := r.deleteUnfinishedPods(ctx, next.job)
	if ttl := next.job.Spec.CompletionPolicy.TTLSecondsAfterFinished; ttl != nil && !neverCompletes(next.job) {
		again = requeue.EarliestDelay(again, max(time.Duration(*ttl)*time.Second, requeue.Soon))
	}
	return again, err
}

// deleteExpired deletes a job that ended ttlSecondsAfterFinished ago.
func (r *Reconciler) deleteExpired(ctx context.Context, job *kruise.BroadcastJob) (time.Duration, error) {
	ttl := job.Spec.CompletionPolicy.TTLSecondsAfterFinished
	if ttl == nil || job.Status.CompletionTime == nil {
		return 0, nil
	}
	if left := job.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(r.Now()); left > 0 {
		return left, nil
	}
	err := r.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil {
		return 0, fmt.Errorf("deleting BroadcastJob %s after its time: %w", client.ObjectKeyFromObject(job), err)
	}
	return 0, nil
}
