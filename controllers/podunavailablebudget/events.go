// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

const controllerName = "podunavailablebudget-controller"

// going is how soon a pod that is being deleted is checked again.
const going = 5 * time.Second

// podEvents enqueues the budgets of pods whose availability changes.
type podEvents struct{ r *Reconciler }

func (h *podEvents) Create(ctx context.Context, e event.CreateEvent, q queue) {
	h.enqueueBudgets(ctx, e.Object, q, 0)
}

func (h *podEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	h.r.recordDrop(client.ObjectKeyFromObject(e.Object), e.Object.GetUID())
	h.enqueueBudgets(ctx, e.Object, q, 0)
}

func (h *podEvents) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	h.enqueueBudgets(ctx, e.Object, q, 0)
}

func (h *podEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	before, okA := e.ObjectOld.(*corev1.Pod)
	after, okB := e.ObjectNew.(*corev1.Pod)
	if !okA || !okB || before.ResourceVersion == after.ResourceVersion {
		return
	}
	moved := !maps.Equal(before.Labels, after.Labels) || controllerUID(before) != controllerUID(after)
	if moved { // the pod may have had other budgets
		h.enqueueBudgets(ctx, before, q, 0)
	}
	if moved || availability.IsActive(before) != availability.IsActive(after) || availability.IsAvailable(before) != availability.IsAvailable(after) {
		h.enqueueBudgets(ctx, after, q, 0)
	}
	if before.DeletionTimestamp == nil && after.DeletionTimestamp != nil {
		h.enqueueBudgets(ctx, after, q, going)
	}
}

func controllerUID(pod *corev1.Pod) types.UID {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return ref.UID
	}
	return ""
}

func (h *podEvents) enqueueBudgets(ctx context.Context, o client.Object, q queue, after time.Duration) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	names, err := h.r.finder.FindForPod(ctx, pod.Namespace, pod)
	switch {
	case err != nil && after > 0:
		h.r.missedLater.EnqueueAllLater(ctx, q, err)
	case err != nil:
		h.r.missed.EnqueueAllLater(ctx, q, err)
	}
	if name := availability.BudgetName(pod); name != "" {
		names = append(names, name)
	}
	enqueueNames(q, pod.Namespace, names, after)
}

func enqueueNames(q queue, namespace string, names []string, after time.Duration) {
	for _, name := range names {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}, after)
	}
}

// workloadEvents enqueues the budgets of a workload that is created or deleted, or whose number of
// pods changes.
type workloadEvents struct {
	r    *Reconciler
	kind schema.GroupVersionKind
}

func (h *workloadEvents) Create(ctx context.Context, e event.CreateEvent, q queue) {
	h.enqueueBudgets(ctx, e.Object, q)
}

func (h *workloadEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	h.enqueueBudgets(ctx, e.Object, q)
}

func (h *workloadEvents) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	h.enqueueBudgets(ctx, e.Object, q)
}

func (h *workloadEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	before, after := e.ObjectOld, e.ObjectNew
	if replicasOrGeneration(before) != replicasOrGeneration(after) || (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) {
		h.enqueueBudgets(ctx, after, q)
	}
}

// replicasOrGeneration changes when the number of replicas of a workload changes. For an object of
// which only metadata is cached it is the generation.
func replicasOrGeneration(o client.Object) int64 {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return int64(ptr.Deref(o.Spec.Replicas, 1))
	case *appsv1.StatefulSet:
		return int64(ptr.Deref(o.Spec.Replicas, 1))
	case *metav1.PartialObjectMetadata:
		return o.GetGeneration()
	}
	if w, ok := kinds.FindByObject(o); ok {
		return int64(ptr.Deref(w.Replicas(o), 1))
	}
	return o.GetGeneration()
}

// enqueueBudgets enqueues the budgets that target the workload, and the budgets that select its pods,
// which it finds by one pod.
func (h *workloadEvents) enqueueBudgets(ctx context.Context, o client.Object, q queue) {
	ref := scale.Reference{APIVersion: h.kind.GroupVersion().String(), Kind: h.kind.Kind, Name: o.GetName()}
	names, err := h.r.finder.FindByTarget(ctx, o.GetNamespace(), ref)
	if err == nil {
		enqueueNames(q, o.GetNamespace(), names, 0)
		names, err = h.bySelector(ctx, o)
		enqueueNames(q, o.GetNamespace(), names, 0)
	}
	if err != nil {
		h.r.missed.EnqueueAllLater(ctx, q, fmt.Errorf("finding the budgets of %s %s: %w", h.kind.Kind, client.ObjectKeyFromObject(o), err))
	}
}

func (h *workloadEvents) bySelector(ctx context.Context, o client.Object) ([]string, error) {
	owners := []types.UID{o.GetUID()}
	if h.kind.Kind == "Deployment" {
		var err error
		if owners, err = h.r.replicaSets(ctx, o.GetNamespace(), o.GetUID()); err != nil {
			return nil, err
		}
	}
	for _, uid := range owners {
		list := &corev1.PodList{}
		err := h.r.Client.List(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{rollout.OwnerIndex: string(uid)}, client.Limit(1), client.UnsafeDisableDeepCopy)
		if err != nil || len(list.Items) > 0 {
			if err != nil {
				return nil, err
			}
			return h.r.finder.FindForPod(ctx, o.GetNamespace(), &list.Items[0])
		}
	}
	return nil, nil
}
