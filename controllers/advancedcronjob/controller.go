// SPDX-License-Identifier: Apache-2.0

// Package advancedcronjob starts Jobs, BroadcastJobs and ImageListPullJobs at given times
// (ACJ-01 to ACJ-05). Whether a run that is due starts is a decision of the policies.
package advancedcronjob

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs/status,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs;imagelistpulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler works on one AdvancedCronJob at a time.
type Reconciler struct {
	reconcile.Deps
	reconcile.Reconciler

	memory *reconcile.Memory[memory]
	missed *reconcile.MissedEvents
}

// memory is what is remembered of an object between reconciles. Only the choice of events to record
// depends on it.
type memory struct {
	recorded reconcile.RecordedEvents
	// ended are the jobs whose end was reported by an event.
	ended map[types.UID]bool
}

// New makes a Reconciler. The client's cache must have the index of Index.
func New(deps reconcile.Deps) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults()}
	r.missed = reconcile.NewMissedEvents(kruise.AdvancedCronJobComponent, r.allRequests)
	r.memory = reconcile.NewMemory(func() memory { return memory{ended: map[types.UID]bool{}} }, func(uid types.UID) { r.Rounds.ForgetWorkload(string(uid)) })
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*kruise.AdvancedCronJob]{
		Reconcile: r.reconcileJob, Forget: r.memory.ForgetObject,
		Status:    func(job *kruise.AdvancedCronJob) any { return &job.Status },
		Summarize: func(job *kruise.AdvancedCronJob) kstatus.Summary { return summarizeSchedule(&job.Status) },
	})
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	b := r.NewController(mgr, kruise.AdvancedCronJobComponent, r.missed).
		For(&kruise.AdvancedCronJob{}, builder.WithPredicates(reconcile.UserChanges()))
	b = namespaces.WatchLabels(b, r.missed.EnqueueInNamespace())
	for _, o := range []client.Object{&batchv1.Job{}, &kruise.BroadcastJob{}, &kruise.ImageListPullJob{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, o, rollout.OwnerIndex, rollout.OwnerUID); err != nil {
			return fmt.Errorf("indexing %T by owner: %w", o, err)
		}
		b = b.Watches(o, handler.EnqueueRequestsFromMapFunc(ownerRequests))
	}
	return r.CompleteController(b, r)
}

// OwnsObject reports whether an object was started by an AdvancedCronJob.
func OwnsObject(o client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(o)
	return ref != nil && ref.Kind == "AdvancedCronJob" && schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group == kruise.GroupVersion.Group
}

func ownerRequests(_ context.Context, o client.Object) []reconcile.Request {
	if !OwnsObject(o) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: metav1.GetControllerOfNoCopy(o).Name}}}
}

func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.AdvancedCronJobList{}, reconcile.AllObjects[*kruise.AdvancedCronJob])
}

// recordEventOnce records an event of a reason unless the last one of that reason said the same.
func (r *Reconciler) recordEventOnce(job *kruise.AdvancedCronJob, kind, reason, message string) {
	r.memory.GetOrCreate(job).recorded.RecordOnce(r.Events, job, kind, reason, message)
}
