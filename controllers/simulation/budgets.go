// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
)

// budgetQueue has the budgets to count, with the times when they are due.
type budgetQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	now func() time.Time
	due map[reconcile.Request]time.Time
}

func (a *budgetQueue) Add(r reconcile.Request) { a.AddAfter(r, 0) }

func (a *budgetQueue) AddAfter(r reconcile.Request, d time.Duration) {
	at := a.now().Add(d)
	if before, ok := a.due[r]; !ok || at.Before(before) {
		a.due[r] = at
	}
}

// takeDue takes the first budget that is due. Otherwise next is when the next one is, zero for
// never.
func (a *budgetQueue) takeDue() (r reconcile.Request, ok bool, next time.Time) {
	var due []reconcile.Request
	for r, at := range a.due {
		if !at.After(a.now()) {
			due = append(due, r)
		} else if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if len(due) == 0 {
		return r, false, next
	}
	r = slices.MinFunc(due, func(a, b reconcile.Request) int { return strings.Compare(a.Name, b.Name) })
	delete(a.due, r)
	return r, true, next
}

// counters runs the controller of budgets.
type counters struct {
	reconciler *podunavailablebudget.Reconciler
	agenda     *budgetQueue
	wrote      bool // a status
	// others is true if there are pods of other workloads, too.
	others bool
}

// reconcileDue counts all budgets that are due. It reports whether it wrote the status of any,
// and when the next one is due, zero for never.
func (b *counters) reconcileDue(ctx context.Context) (did bool, next time.Time, err error) {
	b.wrote = false
	for {
		req, ok, next := b.agenda.takeDue()
		if !ok {
			return b.wrote, next, nil
		}
		result, err := b.reconciler.Reconcile(ctx, req)
		if err != nil {
			return b.wrote, next, fmt.Errorf("counting the pods of PodUnavailableBudget %s: %w", req.Name, err)
		}
		if result.RequeueAfter > 0 {
			b.agenda.AddAfter(req, result.RequeueAfter)
		}
	}
}

// budgetClient is the client of the controller of budgets.
func (b *counters) budgetClient(c *cluster) client.Client {
	return interceptor.NewClient(c.server, interceptor.Funcs{
		List: func(ctx context.Context, server client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var asked client.ListOptions
			asked.ApplyOptions(opts)
			pods, ok := list.(*corev1.PodList)
			if !ok || b.others || asked.FieldSelector != nil {
				return server.List(ctx, list, opts...)
			}
			for _, p := range c.sortedPods() { // the pods of the cache, without a copy
				if (asked.Namespace == "" || p.Namespace == asked.Namespace) && (asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(p.Labels))) {
					pods.Items = append(pods.Items, *p)
				}
			}
			return nil
		},
		Patch: func(ctx context.Context, server client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := server.Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			if pod, ok := o.(*corev1.Pod); ok && c.findPod(pod.Name) != nil {
				return c.commitWrite(ctx, pod.DeepCopy(), false)
			}
			return nil
		},
		SubResourceUpdate: func(ctx context.Context, server client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := server.SubResource(sub).Update(ctx, o, opts...); err != nil {
				return err
			}
			if budget, ok := o.(*policy.PodUnavailableBudget); ok {
				b.wrote = true
				b.agenda.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(budget)})
			}
			return nil
		},
	})
}

// unscaled is a discovery client in which no kind has the subresource scale.
type unscaled struct {
	discovery.ServerResourcesInterface
}

func (unscaled) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
}
