// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// typedKind is a kind with another type.
type typedKind struct {
	Kind
	typ Type
}

func (k typedKind) WorkloadType() Type { return k.typ }

// lateQueue is a countingQueue that is added to later too.
type lateQueue struct {
	countingQueue
	mu sync.Mutex
}

func (q *lateQueue) Add(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.countingQueue.Add(r)
}

func (q *lateQueue) AddAfter(r reconcile.Request, _ time.Duration) { q.Add(r) }

func (q *lateQueue) listAdded() []reconcile.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.added)
}

func (q *lateQueue) ShuttingDown() bool { return false }

// An event whose workloads cannot be read while it is handled is not lost: all workloads are reconciled once they can be listed.
func TestEventsWhoseWorkloadsCannotBeReadAreMadeUpFor(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{"app": "web"}}}
	moved := pod.DeepCopy()
	moved.ResourceVersion, moved.Labels = "2", map[string]string{"app": "other"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	type send func(c *Controller, q queue)
	onPods := func(do func(h handler.EventHandler, q queue)) send {
		return func(c *Controller, q queue) { do(c.PodEvents(), q) }
	}
	created := onPods(func(h handler.EventHandler, q queue) { h.Create(t.Context(), event.CreateEvent{Object: pod}, q) })
	for name, tc := range map[string]struct {
		kind func(fails *atomic.Bool) Kind
		send send
	}{
		"a pod that others own is created": {failsToFindWorkloads, created},
		"it is deleted": {failsToFindWorkloads, onPods(func(h handler.EventHandler, q queue) {
			h.Delete(t.Context(), event.DeleteEvent{Object: pod}, q)
		})},
		"it leaves its workload": {failsToFindWorkloads, onPods(func(h handler.EventHandler, q queue) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: moved}, q)
		})},
		"a pod that a workload may adopt": {func(*atomic.Bool) Kind {
			k := &plainKind{}
			typ := k.WorkloadType()
			typ.Adopts = func(client.Object, *corev1.Pod) bool { return true }
			return typedKind{k, typ}
		}, created},
		"a node of a kind that puts a pod on each": {func(*atomic.Bool) Kind {
			k := &plainKind{}
			typ := k.WorkloadType()
			typ.NodeOf = func(p *corev1.Pod) string { return p.Spec.NodeName }
			return typedKind{k, typ}
		}, func(c *Controller, q queue) { c.NodeEvents().Delete(t.Context(), event.DeleteEvent{Object: node}, q) }},
		"a change of policies": {func(*atomic.Bool) Kind { return &plainKind{} }, func(c *Controller, q queue) {
			c.missed.EnqueueAll().Generic(t.Context(), event.GenericEvent{}, q)
		}},
		"labels of a namespace": {func(*atomic.Bool) Kind { return &plainKind{} }, func(c *Controller, q queue) {
			c.missed.EnqueueInNamespace().Generic(t.Context(), event.GenericEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}, q)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fails atomic.Bool
				fails.Store(true)
				kind := tc.kind(&fails)
				workload := kind.WorkloadType().New()
				workload.SetNamespace("shop")
				workload.SetName("agent")
				b := fakeclient.NewClientBuilder(apiserver.Scheme(t)).WithObjects(workload).WithInterceptorFuncs(interceptor.Funcs{
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
						if fails.Load() {
							return errors.New("the cache is not synced")
						}
						return c.List(ctx, list, opts...)
					},
				})
				c := New(kind, reconcile.Deps{Client: b.Build(), Engine: rules.Engine(t, "")})
				q := &lateQueue{}
				tc.send(c, q)
				time.Sleep(time.Minute)
				synctest.Wait()
				if added := q.listAdded(); len(added) > 0 {
					t.Errorf("while nothing can be read, %v are enqueued", added)
				}
				fails.Store(false)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if added := q.listAdded(); len(added) != 1 || added[0].String() != "shop/agent" {
					t.Errorf("enqueued are %v", added)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// failsToFindWorkloads is a kind that cannot read the workloads of a pod while fails is true.
func failsToFindWorkloads(fails *atomic.Bool) Kind {
	k := &sidecarKind{}
	typ := k.WorkloadType()
	typ.Workloads = func(context.Context, *corev1.Pod) ([]Reference, error) {
		if fails.Load() {
			return nil, errors.New("the cache is not synced")
		}
		return nil, nil
	}
	return typedKind{k, typ}
}
