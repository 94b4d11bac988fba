// SPDX-License-Identifier: Apache-2.0

// Package imagelistpulljob creates an ImagePullJob for each image of an ImageListPullJob, and sums up
// their results (IMG-11, IMG-12). How many nodes pull at once is decided for each of those jobs.
package imagelistpulljob

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
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
	reconcile.Deps
	reconcile.Reconciler
}

// New makes a Reconciler.
func New(deps reconcile.Deps) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults()}
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*kruise.ImageListPullJob]{
		Reconcile: r.reconcileJob, Finalize: r.reconcileJob,
		Status:    func(list *kruise.ImageListPullJob) any { return &list.Status },
		Summarize: func(list *kruise.ImageListPullJob) kstatus.Summary { return summarizeProgress(list, &list.Status) },
	})
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	return r.CompleteController(r.NewController(mgr, component, nil).
		For(&kruise.ImageListPullJob{}, builder.WithPredicates(reconcile.UserChanges())). // its status has the error of a reconcile that failed
		Owns(&kruise.ImagePullJob{}), r)
}

// reconcileJob is one reconcile. It returns when to reconcile again; 0 for when something changes.
func (r *Reconciler) reconcileJob(ctx context.Context, list *kruise.ImageListPullJob) (time.Duration, error) {
	switch {
	case list.DeletionTimestamp != nil:
		return 0, nil // its jobs are deleted with it
	case list.Status.CompletionTime != nil:
		return r.deleteExpired(ctx, list)
	}
	jobs, err := listChildren(ctx, r.Client, list)
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

// deleteExpired deletes a list that has ended once its time to live is over.
func (r *Reconciler) deleteExpired(ctx context.Context, list *kruise.ImageListPullJob) (time.Duration, error) {
	ttl := list.Spec.CompletionPolicy.TTLSecondsAfterFinished
	if ttl == nil {
		return 0, nil
	}
	if left := list.Status.CompletionTime.Add(time.Duration(*ttl) * time.Second).Sub(r.Now()); left > 0 {
		return left, nil
	}
	err := r.Client.Delete(ctx, list, client.Preconditions{UID: &list.UID, ResourceVersion: &list.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil {
		return 0, fmt.Errorf("deleting ImageListPullJob %s, whose time is over: %w", client.ObjectKeyFromObject(list), err)
	}
	return 0, nil
}

// listChildren returns the jobs of a list, as a reader shows them.
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
