// SPDX-License-Identifier: Apache-2.0

// Package uniteddeployment runs one workload in each subset of a UnitedDeployment (UD-01 to
// UD-15). How many pods a subset gets is a decision of the policies.
package uniteddeployment

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=uniteddeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=uniteddeployments/status,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=uniteddeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// OwnerKind is the kind in the owner reference of children.
func OwnerKind() schema.GroupVersionKind { return kruise.GroupVersion.WithKind("UnitedDeployment") }

// Reconciler works on one UnitedDeployment at a time.
type Reconciler struct {
	reconcile.Deps
	reconcile.Reconciler

	memory *reconcile.Memory[memory]
	missed *reconcile.MissedEvents

	writes int
}

// memory is the state that the controller keeps for a UnitedDeployment between rounds.
type memory struct {
	warnings reconcile.RecordedEvents
	// written is when the status was last written.
	written time.Time
	// marks are the conditions of subsets that were written last, until the cache shows them.
	marks map[string]kruise.UnitedDeploymentSubsetCondition
	// gaveUp is the child that was last given up to make room for another one, and gaveUpAt is when.
	gaveUp   types.UID
	gaveUpAt time.Time
	// usedRoom is whether a child was created since then, or none is missing.
	usedRoom bool
	// surplus counts the children that no subset needed in the last round.
	surplus int
}

// New makes a Reconciler. The client's cache must have the indexes of SetupWithManager and of
// rollout.AddIndexes.
func New(deps reconcile.Deps) *Reconciler {
	r := &Reconciler{Deps: deps.WithDefaults(), writes: 32}
	r.missed = reconcile.NewMissedEvents(kruise.UnitedDeploymentComponent, r.allRequests)
	r.memory = reconcile.NewMemory(func() memory { return memory{} }, func(uid types.UID) { r.Rounds.ForgetWorkload(string(uid)) })
	// The garbage collector deletes the children of an object that is deleted.
	r.Reconciler = reconcile.NewObjectReconciler(r.Deps, reconcile.ObjectFuncs[*kruise.UnitedDeployment]{
		Reconcile: r.reconcileSubsets, Forget: r.memory.ForgetObject,
		Status: func(d *kruise.UnitedDeployment) any { return &d.Status }, Summarize: r.summarizeStored,
	})
	return r
}

// SetupWithManager adds the Reconciler, with its watches, to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	b := r.NewController(mgr, kruise.UnitedDeploymentComponent, r.missed).
		For(&kruise.UnitedDeployment{}, builder.WithPredicates(reconcile.UserChanges()))
	b = namespaces.WatchLabels(b, r.missed.EnqueueInNamespace())
	for _, k := range allKinds() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, k.make(), rollout.OwnerIndex, rollout.OwnerUID); err != nil {
			return fmt.Errorf("indexing %s by owner: %w", k.Kind, err)
		}
		b = b.Watches(k.make(), handler.EnqueueRequestsFromMapFunc(ownerRequests))
	}
	b = b.Watches(&corev1.Pod{}, r.missed.EnqueueFound(r.ofPod), builder.WithPredicates(subsetPodPredicate()))
	return r.CompleteController(b, r)
}

// OwnsObject reports whether an object is a child of a UnitedDeployment.
func OwnsObject(o client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(o)
	return ref != nil && schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == OwnerKind().GroupKind()
}

func ownerRequests(_ context.Context, o client.Object) []reconcile.Request {
	if !OwnsObject(o) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: metav1.GetControllerOfNoCopy(o).Name}}}
}

// subsetPodPredicate passes events of pods of subsets when their node, readiness, phase or revision changes.
func subsetPodPredicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return e.Object.GetLabels()[kruise.SubsetNameKey] != "" },
		DeleteFunc:  func(e event.DeleteEvent) bool { return e.Object.GetLabels()[kruise.SubsetNameKey] != "" },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
			return is.Labels[kruise.SubsetNameKey] != "" && (was.Spec.NodeName != is.Spec.NodeName || was.Status.Phase != is.Status.Phase ||
				isReady(was) != isReady(is) || was.Labels[kruise.ControllerRevisionHashKey] != is.Labels[kruise.ControllerRevisionHashKey] ||
				(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil))
		},
	}
}

// ofPod returns a request for the UnitedDeployment of a pod.
func (r *Reconciler) ofPod(ctx context.Context, o client.Object) ([]reconcile.Request, error) {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}
	if schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == appsv1.SchemeGroupVersion.WithKind("ReplicaSet").GroupKind() {
		set := &appsv1.ReplicaSet{}
		if err := r.Client.Get(ctx, key, set); err != nil {
			return nil, client.IgnoreNotFound(err) // if the ReplicaSet is gone, an event of the Deployment follows
		}
		if ref = metav1.GetControllerOfNoCopy(set); ref == nil {
			return nil, nil
		}
		key.Name = ref.Name
	}
	for _, k := range allKinds() {
		if k.Kind == ref.Kind && k.Group == schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group {
			above := k.make()
			if err := r.Client.Get(ctx, key, above); err != nil {
				return nil, client.IgnoreNotFound(err)
			}
			return ownerRequests(ctx, above), nil
		}
	}
	return nil, nil
}

func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.UnitedDeploymentList{}, reconcile.AllObjects[*kruise.UnitedDeployment])
}

// recordEventOnce records a warning unless the last one with that reason had the same message.
func (r *Reconciler) recordEventOnce(d *kruise.UnitedDeployment, reason, message string) {
	r.memory.GetOrCreate(d).warnings.RecordOnce(r.Events, d, corev1.EventTypeWarning, reason, message)
}

// resetRecordedEvent makes sure that the next warning with a reason is recorded, whatever its message is.
func (r *Reconciler) resetRecordedEvent(d *kruise.UnitedDeployment, reason string) {
	r.memory.GetOrCreate(d).warnings.ForgetReason(reason)
}
