// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// onNodes enqueues the jobs that a changed NodeImage names. If a NodeImage is created or deleted, or
// its labels change, it enqueues all unfinished jobs.
func (r *Reconciler) onNodes() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { r.enqueueActive(ctx, q, everyJob) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { r.enqueueActive(ctx, q, everyJob) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			old, ok := e.ObjectOld.(*kruise.NodeImage)
			fresh, ok2 := e.ObjectNew.(*kruise.NodeImage)
			if !ok || !ok2 {
				return
			}
			if !maps.Equal(old.Labels, fresh.Labels) || (old.DeletionTimestamp == nil) != (fresh.DeletionTimestamp == nil) {
				r.enqueueActive(ctx, q, everyJob)
				return
			}
			if equality.Semantic.DeepEqual(old.Spec, fresh.Spec) && equality.Semantic.DeepEqual(old.Status.ImageStatuses, fresh.Status.ImageStatuses) {
				return
			}
			for _, node := range []*kruise.NodeImage{old, fresh} {
				for _, image := range node.Spec.Images {
					for i := range image.Tags {
						for _, owner := range image.Tags[i].OwnerReferences {
							q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}})
						}
					}
				}
			}
		},
	}
}

// onPods enqueues the jobs that select a pod when the pod is bound to a node or leaves it.
func (r *Reconciler) onPods() handler.EventHandler {
	selects := func(pod client.Object) func(*kruise.ImagePullJob) bool {
		return func(job *kruise.ImagePullJob) bool {
			if job.Spec.PodSelector == nil || job.Namespace != pod.GetNamespace() {
				return false
			}
			selector, err := metav1.LabelSelectorAsSelector(job.Spec.PodSelector)
			return err == nil && selector.Matches(labels.Set(pod.GetLabels()))
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if pod, ok := e.Object.(*corev1.Pod); ok && nodeOf(pod) != "" {
				r.enqueueActive(ctx, q, selects(pod))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.enqueueActive(ctx, q, selects(e.Object)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			old, ok := e.ObjectOld.(*corev1.Pod)
			fresh, ok2 := e.ObjectNew.(*corev1.Pod)
			if !ok || !ok2 || nodeOf(old) == nodeOf(fresh) && maps.Equal(old.Labels, fresh.Labels) {
				return
			}
			before, after := selects(old), selects(fresh)
			r.enqueueActive(ctx, q, func(job *kruise.ImagePullJob) bool { return before(job) || after(job) })
		},
	}
}

func everyJob(*kruise.ImagePullJob) bool { return true }

// enqueueActive enqueues the wanted jobs that have not ended.
func (r *Reconciler) enqueueActive(ctx context.Context, q queue, want func(*kruise.ImagePullJob) bool) {
	found, err := reconcile.ListRequests(ctx, r.Client, &kruise.ImagePullJobList{}, want, client.MatchingFields{activeIndex: "true"})
	for _, request := range found {
		q.Add(request)
	}
	if err != nil {
		r.missed.EnqueueAllLater(ctx, q, err)
	}
}

// activeRequests lists the jobs that have not ended.
func (r *Reconciler) activeRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.ImagePullJobList{}, func(job *kruise.ImagePullJob) bool { return job.Status.CompletionTime == nil })
}

// activeIndex finds the jobs that have not ended.
const activeIndex = "regatta.isActive"

func isActive(o client.Object) []string {
	if job, ok := o.(*kruise.ImagePullJob); ok && job.Status.CompletionTime == nil {
		return []string{"true"}
	}
	return nil
}
