// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets,verbs=get;list;watch

// SetupWithManager starts the Reconciler with a manager, which has the indexes of
// rollout.AddIndexes.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	err := mgr.GetFieldIndexer().IndexField(ctx, &appsv1.ReplicaSet{}, rollout.OwnerIndex, ownerUID)
	if err != nil {
		return fmt.Errorf("indexing ReplicaSets by owner: %w", err)
	}
	b := r.NewController(mgr, controllerName, nil).
		For(&policy.PodUnavailableBudget{}).
		Watches(&corev1.Pod{}, r.PodEvents()).
		Watches(&appsv1.Deployment{}, &workloadEvents{r, appsv1.SchemeGroupVersion.WithKind("Deployment")}).
		Watches(&appsv1.StatefulSet{}, &workloadEvents{r, appsv1.SchemeGroupVersion.WithKind("StatefulSet")})
	for _, w := range kinds.PodOwners() {
		var object client.Object = newPartialMetadata(w.GroupVersionKind)
		as := []builder.WatchesOption{builder.OnlyMetadata}
		if w.Acting {
			object, as = w.New(), nil
		}
		// A kind whose CRD is not installed has no objects that could own pods.
		if _, err := mgr.GetRESTMapper().RESTMapping(w.GroupKind(), w.Version); err == nil {
			b = b.Watches(object, &workloadEvents{r, w.GroupVersionKind}, as...)
		}
	}
	return r.CompleteController(b, r)
}

// allRequests lists all budgets.
func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.finder.budgets, &policy.PodUnavailableBudgetList{}, reconcile.AllObjects[*policy.PodUnavailableBudget])
}

// PodEvents returns a handler that enqueues the budgets of the pods of its events. It
// is for callers whose events do not come from the cache of a manager.
func (r *Reconciler) PodEvents() handler.EventHandler { return &podEvents{r} }

func newPartialMetadata(kind schema.GroupVersionKind) client.Object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	return o
}

func ownerUID(o client.Object) []string {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return []string{string(ref.UID)}
	}
	return nil
}
