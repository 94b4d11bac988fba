// SPDX-License-Identifier: Apache-2.0

// Package imagepulljob makes nodes pull the images of ImagePullJobs: it writes tags into the
// NodeImages of the nodes, as many at once as the job and the policies allow, and sums up the results
// (IMG-01 to IMG-05).
package imagepulljob

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs/status,verbs=update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// component is the name of the controller in events.
const component = "imagepulljob-controller"

// Reconciler works on one job at a time.
type Reconciler struct {
	reconcile.Deps
	reconcile.Reconciler

	random    func(int) int
	alwaysTTL int

	beginning sync.Mutex
	written   *written
	places    *places
	paced     paced
	copies    copies
	missed    *reconcile.MissedEvents
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithRandom replaces the source of random numbers below n, which spread the ends of tags.
func WithRandom(below func(n int) int) Option { return func(r *Reconciler) { r.random = below } }

// WithAlwaysTTL sets how many seconds longer than a job that ends its tags are kept; 300 if unset.
func WithAlwaysTTL(seconds int) Option { return func(r *Reconciler) { r.alwaysTTL = seconds } }

// New makes a Reconciler.
func New(deps reconcile.Deps, opts ...Option) *Reconciler {
	r := &Reconciler{
		Deps:   deps.WithDefaults(),
		random: rand.IntN, alwaysTTL: defaultTTLAlways, written: &written{nodes: map[string]*kruise.NodeImage{}}, places: &places{engine: deps.Engine, jobs: map[types.UID]*known{}},
		paced: paced{every: deps.StatusInterval}, copies: copies{seen: map[string]compared{}, sources: map[types.NamespacedName]look{}},
	}
	for _, opt := range opts {
		opt(r)
	}
	r.missed = reconcile.NewMissedEvents(component, r.activeRequests)
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*kruise.ImagePullJob]{
		Reconcile: r.reconcileJob, Finalize: r.reconcileJob,
		Status:    func(job *kruise.ImagePullJob) any { return &job.Status },
		Summarize: func(job *kruise.ImagePullJob) kstatus.Summary { return summarizeProgress(job, &job.Status) },
	})
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &kruise.ImagePullJob{}, activeIndex, isActive); err != nil {
		return fmt.Errorf("indexing ImagePullJobs: %w", err)
	}
	return r.CompleteController(r.NewController(mgr, component, r.missed).
		For(&kruise.ImagePullJob{}, builder.WithPredicates(reconcile.UserChanges())). // its status has the error of a reconcile that failed
		Watches(&kruise.NodeImage{}, r.onNodes()).
		Watches(&corev1.Pod{}, r.onPods()), r)
}
