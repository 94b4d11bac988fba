// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// AddIndexes adds the indexes that Controllers read by: once for each manager.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, o := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		if err := indexer.IndexField(ctx, o, OwnerIndex, OwnerUID); err != nil {
			return fmt.Errorf("indexing %T by owner: %w", o, err)
		}
	}
	return nil
}

// OwnerUID is the value of OwnerIndex for an object: the UID of its controller, or Orphans.
func OwnerUID(o client.Object) []string {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return []string{string(ref.UID)}
	}
	return []string{Orphans}
}

// SetupWithManager starts the Controller with a manager.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr)
	if c.kicks != nil {
		b = b.WatchesRawSource(source.Channel(c.kicks, handler.EnqueueRequestsFromMapFunc(crecovery.WrapMapFunc("rollout", c.allRequests))))
	}
	b = b.Named(strings.ToLower(c.typ.Kind)+"-controller").
		For(c.typ.New(), builder.WithPredicates(UserChanges())).
		Watches(&corev1.Pod{}, c.PodEvents())
	if c.typ.NodeOf != nil {
		b = b.Watches(&corev1.Node{}, c.NodeEvents())
	} else {
		b = b.WatchesMetadata(&corev1.Node{}, c.NodeEvents())
	}
	for _, o := range c.typ.Owned {
		b = b.Watches(o, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), c.typ.New(), handler.OnlyControllerOwner()))
	}
	for _, related := range c.typ.Related {
		var events []builder.WatchesOption
		if related.Events != nil {
			events = append(events, builder.WithPredicates(related.Events))
		}
		b = b.Watches(related.Object, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) (out []reconcile.Request) {
			for _, name := range related.Workloads(o) {
				out = append(out, reconcile.Request{NamespacedName: name})
			}
			return out
		}), events...)
	}
	return requeue.CompleteController(b, controller.Options{MaxConcurrentReconciles: c.workers, RateLimiter: c.limiter}, c)
}

// UserChanges passes changes of a user, but not our own writes of the status: what was
// written is remembered, see Memory. Labels and annotations are facts for policies: an
// approval may be one.
func UserChanges() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// allRequests lists every workload of the kind: other policies, or another node, may change what is
// to be done about any.
func (c *Controller) allRequests(ctx context.Context, _ client.Object) []reconcile.Request {
	list := c.typ.NewList()
	var out []reconcile.Request
	err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy)
	if err == nil {
		err = meta.EachListItem(list, func(o runtime.Object) error {
			if named, ok := o.(client.Object); ok {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(named)})
			}
			return nil
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the workloads of the kind", "kind", c.typ.Kind)
	}
	return out
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podWorkloads are those that a pod belongs to.
func (c *Controller) podWorkloads(ctx context.Context, o client.Object) []Reference {
	if c.typ.Workloads != nil {
		if pod, ok := o.(*corev1.Pod); ok {
			return c.typ.Workloads(ctx, pod)
		}
		return nil
	}
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.Kind != c.typ.Kind || groupOf(ref.APIVersion) != c.typ.Group {
		return nil
	}
	return []Reference{{types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}, ref.UID}}
}

func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}
