// SPDX-License-Identifier: Apache-2.0

// Package imagelistpulljob has an ImagePullJob for each image of an ImageListPullJob, and
// sums up what became of them (IMG-11, IMG-12). How many nodes pull at once is decided for
// each of those jobs.
package imagelistpulljob

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/step"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/status,verbs=update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// component is the name of the controller in events.
const component = "imagelistpulljob-controller"

// Reconciler works on one list at a time.
type Reconciler struct {
	client client.Client
	live   client.Reader
	events record.EventRecorder
	frame  step.Frame[*kruise.ImageListPullJob]

	now     func() time.Time
	workers int
	limiter workqueue.TypedRateLimiter[reconcile.Request]
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(r *Reconciler) { r.now = now } }

// WithRateLimiter sets how fast lists that failed are tried again.
func WithRateLimiter(l workqueue.TypedRateLimiter[reconcile.Request]) Option {
	return func(r *Reconciler) { r.limiter = l }
}

// New makes a Reconciler. live reads past the cache.
func New(c client.Client, live client.Reader, events record.EventRecorder, opts ...Option) *Reconciler {
	r := &Reconciler{client: c, live: live, events: events, now: time.Now, workers: 3}
	for _, opt := range opts {
		opt(r)
	}
	r.frame = step.Frame[*kruise.ImageListPullJob]{
		Kind: "ImageListPullJob", New: func() *kruise.ImageListPullJob { return &kruise.ImageListPullJob{} }, Take: r.reconcileJob, Ending: r.reconcileJob,
		Report: func(ctx context.Context, list *kruise.ImageListPullJob, err error) error {
			return failure.Write(ctx, r.client, list, func(list *kruise.ImageListPullJob) any { return &list.Status }, err, r.now())
		},
	}
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return requeue.CompleteController(ctrl.NewControllerManagedBy(mgr).
		Named(component).
		For(&kruise.ImageListPullJob{}, builder.WithPredicates(rollout.UserChanges())). // what it failed with is written in its status
		Owns(&kruise.ImagePullJob{}), controller.Options{MaxConcurrentReconciles: r.workers, RateLimiter: r.limiter}, r)
}

// Reconcile takes one list a step further.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.frame.Reconcile(ctx, r.client, req)
}

// reconcileJob says when to look again; 0 for when something changes.
func (r *Reconciler) reconcileJob(ctx context.Context, list *kruise.ImageListPullJob) (time.Duration, error) {
	switch {
	case list.DeletionTimestamp != nil:
		return 0, nil // its jobs go with it
	case list.Status.CompletionTime != nil:
		return r.deleteExpired(ctx, list)
	}
	jobs, err := listChildren(ctx, r.client, list)
	if err != nil {
		return 0, err
	}
	if jobs, err = r.syncJobs(ctx, list, jobs); err != nil {
		return 0, err
	}
	if err := r.patchStatus(ctx, list, jobs); err != nil {
		return 0, err
	}
	if list.Status.CompletionTime != nil {
		return r.deleteExpired(ctx, list)
	}
	return 0, nil
}

// deleteExpired deletes a list that has ended when its time is over.
func (r *Reconciler) deleteExpired(ctx context.Context, list *kruise.ImageListPullJob) (time.Duration, error) {
	ttl := list.Spec.CompletionPolicy.TTLSecondsAfterFinished
	if ttl == nil {
		return 0, nil
	}
	if left := list.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(r.now()); left > 0 {
		return left, nil
	}
	err := r.client.Delete(ctx, list, client.Preconditions{UID: &list.UID, ResourceVersion: &list.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil {
		return 0, fmt.Errorf("deleting ImageListPullJob %s, whose time is over: %w", client.ObjectKeyFromObject(list), err)
	}
	return 0, nil
}

// listChildren are the jobs of a list, as a reader shows them.
func listChildren(ctx context.Context, reader client.Reader, list *kruise.ImageListPullJob) ([]*kruise.ImagePullJob, error) {
	all := &kruise.ImagePullJobList{}
	if err := reader.List(ctx, all, client.InNamespace(list.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the jobs of ImageListPullJob %s: %w", client.ObjectKeyFromObject(list), err)
	}
	var out []*kruise.ImagePullJob
	for i := range all.Items {
		if job := &all.Items[i]; metav1.IsControlledBy(job, list) && job.DeletionTimestamp == nil {
			out = append(out, job)
		}
	}
	return out, nil
}
