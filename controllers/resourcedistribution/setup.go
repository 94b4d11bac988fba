// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

const controllerName = "resourcedistribution-controller"

// SetupWithManager starts the Reconciler with a manager. ConfigMaps are watched by their
// metadata, so that a copy that is changed or deleted is repaired at once. Secrets are not watched.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	copies := &metav1.PartialObjectMetadata{}
	copies.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return r.CompleteController(r.NewController(mgr, controllerName, r.missed).
		For(&kruise.ResourceDistribution{}, builder.WithPredicates(changed)).
		Watches(&corev1.Namespace{}, r.missed.EnqueueFound(r.ofNamespace), builder.WithPredicates(predicate.Funcs{UpdateFunc: isRelevantUpdate})).
		Watches(copies, r.onCopies(), builder.OnlyMetadata), r)
}

func isRelevantUpdate(e event.UpdateEvent) bool {
	return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}

// ofNamespace returns requests for all distributions, since any of them may ask for the namespace.
func (r *Reconciler) ofNamespace(ctx context.Context, o client.Object) ([]reconcile.Request, error) {
	if o.GetDeletionTimestamp() != nil {
		r.known.forgetNamespace(o.GetUID())
	}
	return r.allRequests(ctx)
}

// allRequests lists all distributions.
func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.ResourceDistributionList{}, reconcile.AllObjects[*kruise.ResourceDistribution])
}

// onCopies enqueues the distribution of a copy that another client changed or deleted.
func (r *Reconciler) onCopies() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if before := metav1.GetControllerOfNoCopy(e.ObjectOld); before != nil {
				if now := metav1.GetControllerOfNoCopy(e.ObjectNew); now == nil || now.UID != before.UID {
					r.enqueueCopyOwner(ctx, e.ObjectOld, q, true)
				}
			}
			r.enqueueCopyOwner(ctx, e.ObjectNew, q, false)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.enqueueCopyOwner(ctx, e.Object, q, true) },
	}
}

// enqueueCopyOwner enqueues the distribution that owns a copy, if lost is true, which means that the
// distribution no longer owns it, or if the copy has changed since it was last read.
func (r *Reconciler) enqueueCopyOwner(ctx context.Context, o client.Object, q queue, lost bool) {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kruise.Kind("ResourceDistribution") {
		return
	}
	ns := &corev1.Namespace{}
	switch err := r.Client.Get(ctx, client.ObjectKey{Name: o.GetNamespace()}, ns); {
	case apierrors.IsNotFound(err):
		return // the namespace is gone, which has an event of its own
	case err != nil:
		r.known.forgetDistribution(owner.UID) // each copy is read again
		q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: owner.Name}})
		return
	}
	if s, ok := r.known.getCopy(owner.UID, ns.UID); ok && !lost && s.matchesCopy(o) {
		return
	}
	r.known.forgetCopy(owner.UID, ns.UID)
	q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: owner.Name}})
}
