// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podEvents enqueues the jobs whose selector matches a pod.
type podEvents struct{ r *Reconciler }

func (h *podEvents) Create(ctx context.Context, e event.CreateEvent, q queue) {
	h.r.enqueueMatching(ctx, q, e.Object)
}

func (h *podEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	h.r.enqueueMatching(ctx, q, e.Object)
}

func (h *podEvents) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	h.r.enqueueMatching(ctx, q, e.Object)
}

func (h *podEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	before, okA := e.ObjectOld.(*corev1.Pod)
	after, okB := e.ObjectNew.(*corev1.Pod)
	if okA && okB && isRelevantChange(before, after) {
		h.r.enqueueMatching(ctx, q, before, after)
	}
}

// isRelevantChange reports whether a change of a pod can change what a job does.
func isRelevantChange(before, after *corev1.Pod) bool {
	return !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		isActive(before) != isActive(after) || len(before.Spec.EphemeralContainers) != len(after.Spec.EphemeralContainers) ||
		!equality.Semantic.DeepEqual(before.Status.EphemeralContainerStatuses, after.Status.EphemeralContainerStatuses)
}

// enqueueMatching enqueues the unfinished jobs whose selector matches one of the states of a pod.
func (r *Reconciler) enqueueMatching(ctx context.Context, q queue, states ...client.Object) {
	found, err := reconcile.ListRequests(ctx, r.Client, &kruise.EphemeralJobList{}, func(job *kruise.EphemeralJob) bool {
		selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
		return err == nil && !isFinished(job) && slices.ContainsFunc(states, func(pod client.Object) bool { return selector.Matches(labels.Set(pod.GetLabels())) })
	}, client.InNamespace(states[0].GetNamespace()))
	for _, request := range found {
		q.Add(request)
	}
	if err != nil {
		r.missed.EnqueueAllLater(ctx, q, err)
	}
}

// unfinishedRequests returns requests for the unfinished jobs, which a change of the policies may concern.
func (r *Reconciler) unfinishedRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.EphemeralJobList{}, func(job *kruise.EphemeralJob) bool { return !isFinished(job) })
}
