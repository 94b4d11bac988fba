// SPDX-License-Identifier: Apache-2.0

// Package nodepodprobe keeps the NodePodProbes: one for each node, with the probes that the
// PodProbeMarkers ask for in the pods there, and gives pods what the results mean for them
// (PPM-02 to PPM-05, PPM-07).
//
// What a node is to probe is worked out anew from the markers and the pods each time. So a
// probe that a marker does not have any more is gone, whatever happened before.
package nodepodprobe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/podprobemarker/marks"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/step"
	"github.com/regatta-sh/regatta/engine"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=podprobemarkers,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch

const (
	// heldAgain is when pods are looked at again that a rule leaves as they are.
	heldAgain = 10 * time.Second
	// writers is how many pods of a node are written at once.
	writers = 16
)

// Reconciler works on the NodePodProbe of one node at a time.
type Reconciler struct {
	client client.Client
	live   client.Reader
	marks  marks.Writer

	markers  bool
	liveness bool
	workers  int
	kicks    <-chan event.GenericEvent
	limiter  workqueue.TypedRateLimiter[reconcile.Request]

	mu sync.Mutex
	// done has, by node and pod, what was decided about and is written.
	done map[string]map[string]uint64
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(r *Reconciler) { r.marks.Now = now } }

// WithWorkers sets how many NodePodProbes are reconciled at once; 3 if unset.
func WithWorkers(n int) Option { return func(r *Reconciler) { r.workers = n } }

// WithLiveness has nodes run the liveness probes that were taken out of pods.
func WithLiveness(on bool) Option { return func(r *Reconciler) { r.liveness = on } }

// WithMarkers has nodes run the probes of PodProbeMarkers; they do if unset.
func WithMarkers(on bool) Option { return func(r *Reconciler) { r.markers = on } }

// WithKicks has all NodePodProbes looked at for each event: other policies decide.
func WithKicks(kicks <-chan event.GenericEvent) Option {
	return func(r *Reconciler) { r.kicks = kicks }
}

// WithRateLimiter sets how fast NodePodProbes that failed are tried again.
func WithRateLimiter(l workqueue.TypedRateLimiter[reconcile.Request]) Option {
	return func(r *Reconciler) { r.limiter = l }
}

// New makes a Reconciler. The client's cache must have nodes.Index; live reads past
// it.
func New(c client.Client, live client.Reader, e *engine.Engine, opts ...Option) *Reconciler {
	r := &Reconciler{
		client: c, live: live, workers: 3, markers: true, done: map[string]map[string]uint64{},
		marks: marks.Writer{Client: c, Engine: e, Now: time.Now},
	}
	for _, opt := range opts {
		opt(r)
	}
	return r
}

// Reconcile brings the NodePodProbe of one node up to date, and the pods that it has
// results of.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	node, err := nodes.Get(ctx, r.client, r.live, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	probes := &v1alpha1.NodePodProbe{}
	err = r.client.Get(ctx, req.NamespacedName, probes)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, r.create(ctx, node, req.Name)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading NodePodProbe %s: %w", req.Name, err)
	case probes.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	case node == nil || nodes.Virtual(node):
		r.remember(req.Name, nil)
		return reconcile.Result{}, client.IgnoreNotFound(r.client.Delete(ctx, probes, client.Preconditions{UID: &probes.UID}))
	}
	return step.Result(r.keep(ctx, probes))
}

// create makes the NodePodProbe of a node that is ready.
func (r *Reconciler) create(ctx context.Context, node *corev1.Node, name string) error {
	r.remember(name, nil)
	if node == nil || nodes.Virtual(node) || nodes.ReadySince(node).IsZero() {
		return nil
	}
	o := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := r.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating NodePodProbe %s: %w", name, err)
	}
	return nil
}
