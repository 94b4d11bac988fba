// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/step"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// lookAgain is how soon a job that is held is looked at again.
const lookAgain = 5 * time.Second

// Reconcile takes one job a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.frame.Reconcile(ctx, r.client, req)
}

// step says when to look again; 0 for when something changes.
func (r *Reconciler) step(ctx context.Context, job *kruise.ImagePullJob) (time.Duration, error) {
	if job.DeletionTimestamp != nil || job.Status.CompletionTime != nil {
		return r.release(ctx, job)
	}
	if err := r.finalizer(ctx, job, controllerutil.AddFinalizer); err != nil {
		return 0, err
	}
	i, err := tags.Parse(job.Spec.Image)
	if err != nil {
		return 0, r.invalid(ctx, job, err)
	}
	secrets, faults, err := r.secrets(ctx, job)
	if err != nil {
		return 0, err
	}
	o := order{job, i, secrets}
	t, holds, err := r.begin(ctx, o)
	if t == nil {
		return 0, err
	}
	more, later := r.followEdit(ctx, o, t.asked)
	err = errors.Join(err, later)
	t.faults = faults
	status := r.statusOfJob(job, t, holds)
	wait := r.paced.left(job, status, r.now())
	if wait == 0 {
		if later := r.report(ctx, job, status); err == nil {
			err = later
		}
	}
	if err != nil && job.Status.CompletionTime != nil {
		return 0, err // after a back-off: no timer is due before the end is written
	}
	if more {
		wait = requeue.Sooner(wait, step.Soon)
	}
	return requeue.Sooner(r.again(job, holds), wait), err
}

// begin has more nodes pull, and tells how far all are. One job at a time counts nodes and
// begins: counts would be old news for another one that does so meanwhile.
func (r *Reconciler) begin(ctx context.Context, o order) (*tally, []points.Hold, error) {
	job := o.job
	r.beginning.Lock()
	defer r.beginning.Unlock()
	fleet, err := r.fleet(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := r.about(ctx, job, fleet)
	if err != nil {
		return nil, nil, err
	}
	t := countNodes(fleet, nodes, job, o.image, o.secrets)
	if r.left(job, job.Status.StartTime) < 0 {
		return t, nil, nil
	}
	begin, holds := r.decide(ctx, job, o.image, t)
	asked, err := r.place(ctx, o, begin)
	for _, c := range asked {
		t.begun(c)
	}
	return t, holds, err
}

// invalid tells that a job has an image that nodes cannot pull. Admission refuses it, so
// there was none when the job was written.
func (r *Reconciler) invalid(ctx context.Context, job *kruise.ImagePullJob, err error) error {
	s := *job.Status.DeepCopy()
	r.condition(&s, kruise.ImagePullJobHeld, &why{kruise.InvalidImageReason,
		fmt.Sprintf("No node pulls: spec.image %q must be an image such as nginx:1.27: %v.", job.Spec.Image, err)})
	return r.report(ctx, job, s)
}

// again is when to look at a job that goes on.
func (r *Reconciler) again(job *kruise.ImagePullJob, holds []points.Hold) time.Duration {
	if job.Status.CompletionTime != nil {
		return step.Soon // what it held is released then
	}
	after := r.left(job, job.Status.StartTime)
	if len(holds) > 0 {
		after = requeue.Sooner(after, lookAgain)
	}
	if len(job.Spec.PullSecrets) > 0 {
		after = requeue.Sooner(after, copyAgain)
	}
	return after
}

// release lets go of what a job that has ended held, and deletes it when its time is over. The copies of its secrets stay until
// then, and follow their sources: the tags of the job are on the nodes for as long.
func (r *Reconciler) release(ctx context.Context, job *kruise.ImagePullJob) (time.Duration, error) {
	r.places.forget(job.UID)
	r.paced.forget(job.UID)
	left := r.untilExpiry(job)
	if left > 0 && len(job.Spec.PullSecrets) > 0 && controllerutil.ContainsFinalizer(job, kruise.ImagePullJobFinalizer) {
		_, _, err := r.secrets(ctx, job)
		return min(left, copyAgain), err
	}
	if controllerutil.ContainsFinalizer(job, kruise.ImagePullJobFinalizer) {
		if err := r.releaseSecrets(ctx, job); err != nil {
			return left, err
		}
	}
	if err := r.finalizer(ctx, job, controllerutil.RemoveFinalizer); err != nil {
		return left, err
	}
	if job.DeletionTimestamp != nil || job.Spec.CompletionPolicy.TTLSecondsAfterFinished == nil {
		return 0, nil
	}
	if left > 0 {
		return left, nil
	}
	err := r.client.Delete(ctx, job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion})
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
	return max(job.Status.CompletionTime.Add(time.Duration(*ttl)*time.Second).Sub(r.now()), 0)
}

// finalizer changes the finalizer of a job that has not ended.
func (r *Reconciler) finalizer(ctx context.Context, job *kruise.ImagePullJob, change func(client.Object, string) bool) error {
	before := job.DeepCopy()
	if !change(job, kruise.ImagePullJobFinalizer) {
		return nil
	}
	if err := r.client.Patch(ctx, job, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the finalizer of ImagePullJob %s: %w", client.ObjectKeyFromObject(job), err)
	}
	return nil
}
