// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// lookAgain is how soon a job that is held is reconciled again.
const lookAgain = 5 * time.Second

// reconcileJob is one reconcile. It returns when to reconcile again; 0 for when something changes.
func (r *Reconciler) reconcileJob(ctx context.Context, job *kruise.ImagePullJob) (time.Duration, error) {
	if job.DeletionTimestamp != nil || job.Status.CompletionTime != nil {
		return r.finalizeJob(ctx, job)
	}
	if err := r.patchFinalizer(ctx, job, controllerutil.AddFinalizer); err != nil {
		return 0, err
	}
	i, err := tags.ParseImage(job.Spec.Image)
	if err != nil {
		return 0, r.reportInvalidImage(ctx, job, err)
	}
	secrets, faults, err := r.syncSecrets(ctx, job)
	if err != nil {
		return 0, err
	}
	o := order{job, i, secrets}
	t, holds, err := r.startPulls(ctx, o)
	if t == nil {
		return 0, err
	}
	more, later := r.followEdit(ctx, o, t.asked)
	err = errors.Join(err, later)
	t.faults = faults
	status := r.statusOfJob(job, t, holds)
	wait := r.paced.timeToWrite(job, status, r.Now())
	if wait == 0 {
		if later := r.patchStatus(ctx, job, status); err == nil {
			err = later
		}
	}
	if err != nil && job.Status.CompletionTime != nil {
		return 0, err // retried after a backoff: no timer is due before the end is written
	}
	if more {
		wait = requeue.EarliestDelay(wait, requeue.Soon)
	}
	return requeue.EarliestDelay(r.requeueAfter(job, holds), wait), err
}

// startPulls makes more nodes pull, and returns the progress of all nodes. Only one job at a time
// counts nodes and starts pulls: otherwise the counts would be outdated when a pull starts.
func (r *Reconciler) startPulls(ctx context.Context, o order) (*tally, []points.Hold, error) {
	job := o.job
	r.beginning.Lock()
	defer r.beginning.Unlock()
	fleet, err := r.listNodeImages(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := r.selectNodes(ctx, job, fleet)
	if err != nil {
		return nil, nil, err
	}
	t := countNodes(fleet, nodes, job, o.image, o.secrets)
	if r.timeToDeadline(job, job.Status.StartTime) < 0 {
		return t, nil, nil
	}
	begin, holds := r.decideNodes(ctx, job, o.image, t)
	asked, err := r.requestPulls(ctx, o, begin)
	for _, c := range asked {
		t.markPulling(c)
	}
	return t, holds, err
}

// reportInvalidImage reports that a job has an image that nodes cannot pull. Admission refuses such a
// job, so it was written without admission.
func (r *Reconciler) reportInvalidImage(ctx context.Context, job *kruise.ImagePullJob, err error) error {
	s := *job.Status.DeepCopy()
	r.setCondition(&s, kruise.ImagePullJobHeld, &why{kruise.InvalidImageReason,
		fmt.Sprintf("No node pulls: spec.image %q must be an image such as nginx:1.27: %v.", job.Spec.Image, err)})
	kstatus.SetConditions(&s, summarizeProgress(job, &s), job.Generation, r.Now())
	return r.patchStatus(ctx, job, s)
}

// requeueAfter returns when to reconcile an unfinished job again.
func (r *Reconciler) requeueAfter(job *kruise.ImagePullJob, holds []points.Hold) time.Duration {
	if job.Status.CompletionTime != nil {
		return requeue.Soon // the finished job is finalized then
	}
	after := r.timeToDeadline(job, job.Status.StartTime)
	if len(holds) > 0 {
		after = requeue.EarliestDelay(after, lookAgain)
	}
	if len(job.Spec.PullSecrets) > 0 {
		after = requeue.EarliestDelay(after, copyAgain)
	}
	return after
}

// finalizeJob releases what a job that has ended held, and deletes the job when its time to live is over. The copies of its secrets
// stay until then, and follow their sources, since the tags of the job stay on the nodes for as long.
func (r *Reconciler) finalizeJob(ctx context.Context, job *kruise.ImagePullJob) (time.Duration, error) {
	r.places.forgetJob(job.UID)
	r.paced.forgetJob(job.UID)
	left := r.untilExpiry(job)
	if left > 0 && len(job.Spec.PullSecrets) > 0 && controllerutil.ContainsFinalizer(job, kruise.ImagePullJobFinalizer) {
		_, _, err := r.syncSecrets(ctx, job)
		return min(left, copyAgain), err
	}
	if controllerutil.ContainsFinalizer(job, kruise.ImagePullJobFinalizer) {
		if err := r.releaseSecrets(ctx, job); err != nil {
			return left, err
		}
	}
	if err := r.patchFinalizer(ctx, job, controllerutil.RemoveFinalizer); err != nil {
		return left, err
	}
	if job.DeletionTimestamp != nil || job.Spec.CompletionPolicy.TTLSecondsAfterFinished == nil {
		return 0, nil
	}
	if left > 0 {
		return left, nil
	}
	err := r.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion})
	if err != nil {
		return 0, fmt.Errorf("deleting ImagePullJob %s, whose time is over: %w", client.ObjectKeyFromObject(job), err)
	}
	return 0, nil
}

// untilExpiry is how long a job that has ended is kept; 0 if it is deleted, or has no TTL.
func (r *Reconciler) untilExpiry(job *kruise.ImagePullJob) time.Duration {
	ttl := job.Spec.CompletionPolicy.TTLSecondsAfterFinished
	if job.DeletionTimestamp != nil || job.Status.CompletionTime == nil || ttl == nil {
		return 0
	}
	return max(job.Status.CompletionTime.Add(time.Duration(*ttl)*time.Second).Sub(r.Now()), 0)
}

// patchFinalizer changes the finalizer of a job that has not ended.
func (r *Reconciler) patchFinalizer(ctx context.Context, job *kruise.ImagePullJob, change func(client.Object, string) bool) error {
	before := job.DeepCopy()
	if !change(job, kruise.ImagePullJobFinalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, job, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the finalizer of ImagePullJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return nil
}
