// SPDX-License-Identifier: Apache-2.0

// Package nodeimage keeps the NodeImages: one for each node, with its labels, without
// tags that nothing wants any more, and with an end for pulls that a node never reports
// (IMG-06 to IMG-08).
package nodeimage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler works on the NodeImage of one node at a time.
type Reconciler struct {
	reconcile.Deps

	delay  time.Duration
	missed *reconcile.MissedEvents
}

// Option changes a Reconciler.
type Option func(*Reconciler)

// WithCreationDelay sets how long a node must be ready before it has a NodeImage; 30 s
// if unset.
func WithCreationDelay(d time.Duration) Option { return func(r *Reconciler) { r.delay = d } }

// New makes a Reconciler.
func New(deps reconcile.Deps, opts ...Option) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults(), delay: 30 * time.Second}
	for _, opt := range opts {
		opt(r)
	}
	r.missed = reconcile.NewMissedEvents(controllerName, r.allRequests)
	return r
}

const controllerName = "nodeimage-controller"

// SetupWithManager starts the Reconciler with a manager. Nodes are written often; only changes of the
// labels and of readiness are reconciled.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	return r.CompleteController(r.NewController(mgr, controllerName, nil).
		For(&kruise.NodeImage{}).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: isRelevantUpdate})).
		Watches(&kruise.ImagePullJob{}, r.missed.EnqueueFound(r.ofJob), builder.WithPredicates(predicate.Funcs{
			// The controller of ImagePullJobs writes the images of a job. Here only a deleted job, or one with another
			// image, matters.
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: anotherImage,
		})), r)
}

func anotherImage(e event.UpdateEvent) bool {
	old, ok := e.ObjectOld.(*kruise.ImagePullJob)
	fresh, ok2 := e.ObjectNew.(*kruise.ImagePullJob)
	return ok && ok2 && old.Spec.Image != fresh.Spec.Image
}

func isRelevantUpdate(e event.UpdateEvent) bool {
	old, ok := e.ObjectOld.(*corev1.Node)
	fresh, ok2 := e.ObjectNew.(*corev1.Node)
	return !ok || !ok2 || !equality.Semantic.DeepEqual(old.Labels, fresh.Labels) || !nodes.ReadySince(old).Equal(nodes.ReadySince(fresh))
}

// Reconcile brings the NodeImage of one node up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	node, err := nodes.Get(ctx, r.Client, r.Live, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	image := &kruise.NodeImage{}
	err = r.Client.Get(ctx, req.NamespacedName, image)
	switch {
	case apierrors.IsNotFound(err):
		after, err := r.createNodeImage(ctx, node)
		return reconcile.Result{RequeueAfter: after}, err
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading NodeImage %s: %w", req.Name, err)
	case image.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	case node == nil && image.Labels[kruise.FakeNodeImageKey] == "":
		err := r.Client.Delete(ctx, image, client.Preconditions{UID: &image.UID})
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	after, err := r.reconcileNodeImage(ctx, image, node)
	return requeue.ReconcileResult(ctx, image, after, err)
}

// createNodeImage makes the NodeImage of a node that has been ready for long enough.
func (r *Reconciler) createNodeImage(ctx context.Context, node *corev1.Node) (time.Duration, error) {
	if node == nil || nodes.IsVirtual(node) {
		return 0, nil
	}
	since := nodes.ReadySince(node)
	if since.IsZero() {
		return 0, nil
	}
	if left := since.Add(r.delay).Sub(r.Now()); left > 0 {
		return left, nil
	}
	image := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
	if err := r.Client.Create(ctx, image); err != nil && !apierrors.IsAlreadyExists(err) {
		return 0, fmt.Errorf("creating NodeImage %s: %w", node.Name, err)
	}
	return 0, nil
}
