// SPDX-License-Identifier: Apache-2.0

// Package nodepodprobe keeps the NodePodProbes: one for each node, with the probes that
// PodProbeMarkers set for the pods on the node, and writes conditions, labels and annotations onto
// pods by the results (PPM-02 to PPM-05, PPM-07).
//
// The probes of a node are computed from the markers and the pods each time. So a probe that a marker
// does not have any more is removed, whatever happened before.
package nodepodprobe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/podprobemarker/podmeta"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/inflight"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=podprobemarkers,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

const (
	// heldAgain is how soon pods that a rule leaves unchanged are reconciled again.
	heldAgain = 10 * time.Second
	// behindAgain is how soon pods are reconciled again for which the cache does not show the last write.
	behindAgain = 50 * time.Millisecond
	// racedAgain is how soon pods that were changed or deleted meanwhile are reconciled again.
	racedAgain = time.Second
)

// Reconciler works on the NodePodProbe of one node at a time.
type Reconciler struct {
	reconcile.Deps

	marks  podmeta.Writer
	missed *reconcile.MissedEvents

	markers  bool
	liveness bool
	window   *inflight.Window
	// working bounds the nodes that are reconciled at once. Nodes that wait for writes do not count: the
	// window bounds them.
	working chan struct{}

	mu sync.Mutex
	// known has the memory of each node.
	known map[string]memory
}

// memory is what is remembered of a node.
type memory struct {
	// probes is its NodePodProbe as it was written last, until the cache shows it.
	probes *v1alpha1.NodePodProbe
	// pods has, by UID, the decisions about pods that were made and written.
	pods map[string]decided
}

// decided is the last decision about a pod.
type decided struct {
	sum uint64
	// written is the pod with the version that was written then, until the cache shows it; nil without a
	// write.
	written metav1.Object
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithWindow makes writes share a bound with all other writes of the process. If unset, the bound is
// that of a new Window.
func WithWindow(w *inflight.Window) Option { return func(r *Reconciler) { r.window = w } }

// WithLiveness makes nodes run the liveness probes that the webhook moved into annotations of pods.
func WithLiveness(on bool) Option { return func(r *Reconciler) { r.liveness = on } }

// WithMarkers makes nodes run the probes of PodProbeMarkers; they do if unset.
func WithMarkers(on bool) Option { return func(r *Reconciler) { r.markers = on } }

// New makes a Reconciler. The client's cache must have nodes.Index.
func New(deps reconcile.Deps, opts ...Option) *Reconciler {
	r := &Reconciler{
		Deps:    deps.WithDefaults(),
		markers: true, known: map[string]memory{}, window: inflight.New(time.Now),
	}
	r.marks = podmeta.Writer{Client: r.Client, Engine: r.Engine, Now: r.Now}
	for _, opt := range opts {
		opt(r)
	}
	r.missed = reconcile.NewMissedEvents(controllerName, r.allRequests)
	r.working = make(chan struct{}, max(r.Workers, 1))
	return r
}

// Reconcile brings the NodePodProbe of one node up to date, and the pods that the node has reported
// results of.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.working <- struct{}{}
	defer func() { <-r.working }()
	node, err := nodes.Get(ctx, r.Client, r.Live, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	probes := &v1alpha1.NodePodProbe{}
	err = r.Client.Get(ctx, req.NamespacedName, probes)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, r.createNodePodProbe(ctx, node, req.Name)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading NodePodProbe %s: %w", req.Name, err)
	case probes.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	case node == nil || nodes.IsVirtual(node):
		r.forgetNode(req.Name)
		return reconcile.Result{}, client.IgnoreNotFound(r.Client.Delete(ctx, probes, client.Preconditions{UID: &probes.UID}))
	}
	after, err := r.reconcileProbes(ctx, r.newestProbes(probes))
	return requeue.ReconcileResult(ctx, probes, after, err)
}

// runWrites runs the writes for one node, as many at once as the window allows, and waits for them.
// Other nodes are reconciled meanwhile.
func (r *Reconciler) runWrites(acts ...func() error) error {
	if len(acts) == 0 {
		return nil
	}
	turn := r.window.NewShare()
	for i, act := range acts {
		acts[i] = func() error { return turn.RunInTurn(act) }
	}
	<-r.working
	defer func() { r.working <- struct{}{} }()
	return batch.RunParallel(r.window.MaxLimit(), acts)
}

// createNodePodProbe makes the NodePodProbe of a node that is ready.
func (r *Reconciler) createNodePodProbe(ctx context.Context, node *corev1.Node, name string) error {
	r.forgetNode(name)
	if node == nil || nodes.IsVirtual(node) || nodes.ReadySince(node).IsZero() {
		return nil
	}
	o := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := r.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		err = fmt.Errorf("creating NodePodProbe %s: %w", name, err)
		failure.RecordFailure(r.Events, node, err)
		return err
	}
	return nil
}
