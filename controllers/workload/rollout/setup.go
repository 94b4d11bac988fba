// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
)

// AddIndexes adds the indexes with which Controllers read. It is called once for each manager.
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

// SetupWithManager adds the Controller to a manager.
func (c *Controller) SetupWithManager(_ context.Context, mgr ctrl.Manager) error {
	b := c.NewController(mgr, c.controllerName(), c.missed).
		For(c.typ.New(), builder.WithPredicates(reconcile.UserChanges())).
		Watches(&corev1.Pod{}, c.PodEvents()).
		Watches(&corev1.Node{}, c.NodeEvents())
	if c.ownsPods() { // the labels of its namespace are facts of the workload
		b = namespaces.WatchLabels(b, c.missed.EnqueueInNamespace())
	}
	for _, o := range c.typ.Owned {
		b = b.Watches(o, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), c.typ.New(), handler.OnlyControllerOwner()))
	}
	for _, related := range c.typ.Related {
		var events []builder.WatchesOption
		if related.Events != nil {
			events = append(events, builder.WithPredicates(related.Events))
		}
		b = b.Watches(related.Object, c.missed.EnqueueFound(related.Workloads), events...)
	}
	return c.CompleteController(b, c)
}

func (c *Controller) controllerName() string { return strings.ToLower(c.typ.Kind) + "-controller" }

// allRequests returns all workloads of the kind: a change of policies, or of a node, may change what is
// to be done for each.
func (c *Controller) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, c.Client, c.typ.NewList(), reconcile.AllObjects[client.Object])
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podWorkloads returns the workloads that a pod belongs to. Beside an error it returns those that it found.
func (c *Controller) podWorkloads(ctx context.Context, o client.Object) ([]Reference, error) {
	if c.typ.Workloads != nil {
		if pod, ok := o.(*corev1.Pod); ok {
			return c.typ.Workloads(ctx, pod)
		}
		return nil, nil
	}
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.Kind != c.typ.Kind || groupOf(ref.APIVersion) != c.typ.Group {
		return nil, nil
	}
	return []Reference{{types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}, ref.UID}}, nil
}

func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}
