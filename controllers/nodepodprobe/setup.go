// SPDX-License-Identifier: Apache-2.0

package nodepodprobe

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/livenessprobe"
	"github.com/regatta-sh/regatta/controllers/podprobemarker/podmeta"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

const controllerName = "nodepodprobe-controller"

// SetupWithManager starts the Reconciler with a manager. All reconciled objects are named after nodes.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	b := r.NewController(mgr, controllerName, r.missed).
		For(&v1alpha1.NodePodProbe{}).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: isRelevantUpdate})).
		Watches(&corev1.Pod{}, r.onPods()).
		Watches(&v1alpha1.PodProbeMarker{}, r.onMarkers())
	all := r.Deps
	all.Workers = r.window.MaxLimit() // workers that wait for writes do not count as working, see Reconciler
	return all.CompleteController(b, r)
}

func isRelevantUpdate(e event.UpdateEvent) bool {
	old, ok := e.ObjectOld.(*corev1.Node)
	fresh, ok2 := e.ObjectNew.(*corev1.Node)
	return !ok || !ok2 || nodes.IsVirtual(old) != nodes.IsVirtual(fresh) || nodes.ReadySince(old).IsZero() != nodes.ReadySince(fresh).IsZero()
}

func onNode(q queue, name string) {
	if name != "" {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
}

// onPods enqueues the node of a pod if a change of the pod can change its probes or its marks.
func (r *Reconciler) onPods() handler.EventHandler {
	look := func(ctx context.Context, o client.Object, q queue) {
		pod, ok := o.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			return
		}
		if (pod.Annotations[kruise.ContainerProbeContextKey] == "" || !r.liveness) && r.lacksMarkers(ctx, pod.Namespace) {
			return // there is nothing to do
		}
		onNode(q, pod.Spec.NodeName)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { look(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { look(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			old, ok := e.ObjectOld.(*corev1.Pod)
			fresh, ok2 := e.ObjectNew.(*corev1.Pod)
			if ok && ok2 && old.UID == fresh.UID && old.Status.PodIP == fresh.Status.PodIP && podmeta.IsProbeable(old) == podmeta.IsProbeable(fresh) &&
				maps.Equal(old.Labels, fresh.Labels) && maps.Equal(old.Annotations, fresh.Annotations) &&
				(fresh.Annotations[kruise.ContainerProbeContextKey] == "" || slices.Equal(startedContainers(old), startedContainers(fresh))) {
				return
			}
			look(ctx, e.ObjectNew, q)
		},
	}
}

// lacksMarkers reports whether a namespace has no markers. It is false if that is not known.
func (r *Reconciler) lacksMarkers(ctx context.Context, namespace string) bool {
	some, err := podmeta.List(ctx, r.Client, namespace)
	return err == nil && len(some) == 0
}

// startedContainers are the containers whose liveness probes may run.
func startedContainers(pod *corev1.Pod) (out []string) {
	for i := range pod.Status.ContainerStatuses {
		if name := pod.Status.ContainerStatuses[i].Name; livenessprobe.IsContainerStarted(pod, name) {
			out = append(out, name)
		}
	}
	return out
}

// onMarkers enqueues the nodes that run, or ran, pods of a marker.
func (r *Reconciler) onMarkers() handler.EventHandler {
	look := func(ctx context.Context, o client.Object, q queue) {
		all, err := r.allRequests(ctx)
		for _, req := range all {
			if r.markerAffectsNode(ctx, req.Name, o) {
				q.Add(req)
			}
		}
		if err != nil {
			r.missed.EnqueueAllLater(ctx, q, err)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { look(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { look(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			old, ok := e.ObjectOld.(*v1alpha1.PodProbeMarker)
			fresh, ok2 := e.ObjectNew.(*v1alpha1.PodProbeMarker)
			if ok && ok2 && equality.Semantic.DeepEqual(old.Spec, fresh.Spec) && (old.DeletionTimestamp == nil) == (fresh.DeletionTimestamp == nil) {
				return
			}
			look(ctx, e.ObjectOld, q)
			look(ctx, e.ObjectNew, q)
		},
	}
}

// markerAffectsNode reports whether a node has pods that a marker selects, or probes of it.
func (r *Reconciler) markerAffectsNode(ctx context.Context, node string, o client.Object) bool {
	marker, ok := o.(*v1alpha1.PodProbeMarker)
	if !ok {
		return false
	}
	probes := &v1alpha1.NodePodProbe{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: node}, probes); err != nil || HasProbes(probes, marker) {
		return true
	}
	m, err := podmeta.Read(marker)
	if err != nil {
		return false
	}
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.InNamespace(marker.Namespace), client.MatchingFields{nodes.Index: node}, client.UnsafeDisableDeepCopy); err != nil {
		return true
	}
	for i := range list.Items {
		if m.SelectsPod(&list.Items[i], false) {
			return true
		}
	}
	return false
}

// HasProbes reports whether a node has probes of a marker.
func HasProbes(o *v1alpha1.NodePodProbe, marker *v1alpha1.PodProbeMarker) bool {
	for i := range o.Spec.PodProbes {
		pod := &o.Spec.PodProbes[i]
		if pod.Namespace != marker.Namespace {
			continue
		}
		for j := range pod.Probes {
			if strings.HasPrefix(pod.Probes[j].Name, podmeta.Name(marker.Name, "")) {
				return true
			}
		}
	}
	return false
}

// allRequests lists every NodePodProbe.
func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &v1alpha1.NodePodProbeList{}, reconcile.AllObjects[*v1alpha1.NodePodProbe])
}
