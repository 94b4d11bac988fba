// SPDX-License-Identifier: Apache-2.0

// Package imagepulljob has nodes pull the images of ImagePullJobs: it writes tags into
// their NodeImages, as many at once as the job and the policies let it, and sums up what
// became of them (IMG-01 to IMG-05).
package imagepulljob

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/regatta-sh/regatta/engine"
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
	client client.Client
	live   client.Reader
	engine *engine.Engine
	events record.EventRecorder
	frame  step.Frame[*kruise.ImagePullJob]

	now       func() time.Time
	random    func(int) int
	alwaysTTL int
	workers   int
	limiter   workqueue.TypedRateLimiter[reconcile.Request]

	beginning sync.Mutex
	written   *written
	places    *places
	paced     paced
	copies    copies
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(r *Reconciler) { r.now = now } }

// WithRandom replaces the random numbers below n by which the ends of tags are spread.
func WithRandom(below func(n int) int) Option { return func(r *Reconciler) { r.random = below } }

// WithWorkers sets how many jobs are reconciled at once; 3 if unset.
func WithWorkers(n int) Option { return func(r *Reconciler) { r.workers = n } }

// WithAlwaysTTL sets how many seconds tags of jobs that end stay longer than these; 300 if
// unset.
func WithAlwaysTTL(seconds int) Option { return func(r *Reconciler) { r.alwaysTTL = seconds } }

// WithStatusEvery sets how long it is at least between two writes of the status of a job that tell no
// more than how far it is; 0 if unset.
func WithStatusEvery(d time.Duration) Option { return func(r *Reconciler) { r.paced.every = d } }

// WithRateLimiter sets how fast jobs that failed are tried again.
func WithRateLimiter(l workqueue.TypedRateLimiter[reconcile.Request]) Option {
	return func(r *Reconciler) { r.limiter = l }
}

// New makes a Reconciler. live reads past the cache.
func New(c client.Client, live client.Reader, e *engine.Engine, events record.EventRecorder, opts ...Option) *Reconciler {
	r := &Reconciler{
		client: c, live: live, engine: e, events: events, now: time.Now, random: rand.IntN, alwaysTTL: defaultTTLAlways, workers: 3,
		written: &written{nodes: map[string]*kruise.NodeImage{}}, places: &places{engine: e, jobs: map[types.UID]*known{}},
		copies: copies{seen: map[string]compared{}, sources: map[types.NamespacedName]look{}},
	}
	for _, opt := range opts {
		opt(r)
	}
	r.frame = step.Frame[*kruise.ImagePullJob]{
		Kind: "ImagePullJob", New: func() *kruise.ImagePullJob { return &kruise.ImagePullJob{} }, Take: r.reconcileJob, Ending: r.reconcileJob,
		Report: func(ctx context.Context, job *kruise.ImagePullJob, err error) error {
			return failure.Write(ctx, r.client, job, func(job *kruise.ImagePullJob) any { return &job.Status }, err, r.now())
		},
	}
	return r
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &kruise.ImagePullJob{}, activeIndex, isActive); err != nil {
		return fmt.Errorf("indexing ImagePullJobs: %w", err)
	}
	return requeue.CompleteController(ctrl.NewControllerManagedBy(mgr).
		Named(component).
		For(&kruise.ImagePullJob{}, builder.WithPredicates(rollout.UserChanges())). // what it failed with is written in its status
		Watches(&kruise.NodeImage{}, r.onNodes()).
		Watches(&corev1.Pod{}, r.onPods()), controller.Options{MaxConcurrentReconciles: r.workers, RateLimiter: r.limiter}, r)
}
