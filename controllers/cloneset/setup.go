package cloneset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// OwnerIndex finds objects by the UID of the controller that owns them.
const OwnerIndex = "ownerRefUID"

// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status;pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch

// Index adds the indexes that a Reconciler reads by. It is for whoever makes
// the manager, once, since other workloads read by them too.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		if err := indexer.IndexField(ctx, o, OwnerIndex, ownerUID); err != nil {
			return fmt.Errorf("indexing %T by owner: %w", o, err)
		}
	}
	return nil
}

func ownerUID(o client.Object) []string {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return []string{string(ref.UID)}
	}
	return nil
}

// SetupWithManager starts the Reconciler with a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr)
	if r.kicks != nil {
		b = b.WatchesRawSource(source.Channel(r.kicks, handler.EnqueueRequestsFromMapFunc(r.all)))
	}
	return b.
		Named("cloneset-controller").
		For(&kruise.CloneSet{}, builder.WithPredicates(asked())).
		Watches(&corev1.Pod{}, r.PodEvents()).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &kruise.CloneSet{}, handler.OnlyControllerOwner())).
		WatchesMetadata(&corev1.Node{}, r.NodeEvents()).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.workers, RateLimiter: r.limiter}).
		Complete(r)
}

// PodEvents is told of pods, and enqueues their CloneSets. It is for whoever has
// events from elsewhere than the cache of a manager.
func (r *Reconciler) PodEvents() handler.EventHandler { return &podEvents{r} }

// NodeEvents is told of nodes, and learns where they are; see PodEvents.
func (r *Reconciler) NodeEvents() handler.EventHandler { return &nodeEvents{r} }

// asked lets pass what a user changes, but not our own writes of the status.
// Labels and annotations are facts for policies: an approval may be one.
func asked() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// all lists every CloneSet: other policies may decide otherwise about any.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &kruise.CloneSetList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing CloneSets after a change of policies")
		return nil
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return out
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podEvents enqueues the CloneSet of a pod and tells the overlay what the cache
// has shown.
type podEvents struct{ r *Reconciler }

func (h *podEvents) enqueue(o client.Object, q queue) {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.Kind != "CloneSet" || groupOf(ref.APIVersion) != kruise.GroupName {
		return
	}
	h.r.overlay.Observe(ref.UID, o.GetUID())
	req := reconcile.Request{}
	req.Namespace, req.Name = o.GetNamespace(), ref.Name
	q.Add(req)
}

func (h *podEvents) Create(_ context.Context, e event.CreateEvent, q queue) { h.enqueue(e.Object, q) }
func (h *podEvents) Delete(_ context.Context, e event.DeleteEvent, q queue) {
	if ref := metav1.GetControllerOfNoCopy(e.Object); ref != nil {
		h.r.overlay.Ended(ref.UID, e.Object.GetUID())
	}
	h.enqueue(e.Object, q)
}

func (h *podEvents) Generic(_ context.Context, e event.GenericEvent, q queue) {
	h.enqueue(e.Object, q)
}

func (h *podEvents) Update(_ context.Context, e event.UpdateEvent, q queue) {
	before, okA := e.ObjectOld.(*corev1.Pod)
	after, okB := e.ObjectNew.(*corev1.Pod)
	if !okA || !okB || before.ResourceVersion == after.ResourceVersion {
		return
	}
	if old := metav1.GetControllerOfNoCopy(before); old != nil {
		if now := metav1.GetControllerOfNoCopy(after); now == nil || now.UID != old.UID {
			h.enqueue(before, q)
		}
	}
	if h.r.gates.EventOptimization && !relevant(before, after, h.r.gates.VerticalScaling) {
		return
	}
	h.enqueue(after, q)
}

// nodeEvents keeps the topology; it enqueues nothing.
type nodeEvents struct{ r *Reconciler }

func (h *nodeEvents) Create(_ context.Context, e event.CreateEvent, _ queue) {
	h.r.topology.Observe(e.Object.GetName(), e.Object.GetLabels())
}

func (h *nodeEvents) Update(_ context.Context, e event.UpdateEvent, _ queue) {
	h.r.topology.Observe(e.ObjectNew.GetName(), e.ObjectNew.GetLabels())
}

func (h *nodeEvents) Delete(_ context.Context, e event.DeleteEvent, _ queue) {
	h.r.topology.Forget(e.Object.GetName())
}

func (h *nodeEvents) Generic(context.Context, event.GenericEvent, queue) {}
