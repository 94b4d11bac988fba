// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// A round that fails says when pods that wait for a node are late, so that they are looked at in time.
func TestARoundThatFailsKeepsItsTimers(t *testing.T) {
	for name, refuse := range map[string]func(*world) interceptor.Funcs{
		"a child is not updated": func(*world) interceptor.Funcs {
			return interceptor.Funcs{Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
				return errors.New("refused")
			}}
		},
		"the status is not written": func(*world) interceptor.Funcs {
			return interceptor.Funcs{SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
				return errors.New("refused")
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(d *kruise.UnitedDeployment) {
				limits(d, &kruise.AdaptiveUnitedDeploymentStrategy{RescheduleCriticalSeconds: ptr.To[int32](30), UnschedulableDuration: ptr.To[int32](60)}, 6, 6)
			})
			w.room["a"] = 2
			w.settle(5 * time.Second)
			w.edit(func(d *kruise.UnitedDeployment) { image(d, "nginx:2") })
			w.r.Client = interceptor.NewClient(w.api, refuse(w))
			res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key})
			if err == nil {
				t.Fatal("the write was not refused")
			}
			if res.RequeueAfter <= 0 || res.RequeueAfter > 30*time.Second {
				t.Errorf("it is looked at again after %s, want when its pods are late", res.RequeueAfter)
			}
		})
	}
}

// A subset that has just recovered and gets more pods is marked before it gets them: without the mark the next round would
// take them for pods with room.
func TestASubsetThatGrowsIsMarkedBeforeItsPodsCome(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) {
		limits(d, &kruise.AdaptiveUnitedDeploymentStrategy{
			RescheduleCriticalSeconds: ptr.To[int32](10), UnschedulableDuration: ptr.To[int32](30), ReserveUnschedulablePods: true,
		})
	})
	w.room["a"] = 4
	w.settle(20 * time.Second)
	delete(w.room, "a")
	w.settle(15 * time.Second)
	marked := func(d *kruise.UnitedDeployment) bool {
		i := slices.IndexFunc(d.Status.SubsetStatuses, func(s kruise.UnitedDeploymentSubsetStatus) bool { return s.Name == "a" })
		return len(d.Status.SubsetStatuses[i].Conditions) > 0 && d.Status.SubsetStatuses[i].Conditions[0].Status == "False"
	}
	was := int32(0)
	unmarked, grew := false, false
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if set, ok := o.(*kruise.CloneSet); ok && set.Labels[kruise.SubsetNameKey] == "a" && *set.Spec.Replicas > was {
			grew, unmarked = true, !marked(w.get())
		}
		return c.Update(ctx, o, opts...)
	}})
	for range 40 {
		was, grew = w.child("a").replicas, false
		if w.condition("a") == "False reschedule" && w.get().Status.ReservedPods == 0 {
			break
		}
		w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To(*d.Spec.Replicas + 1) })
		w.reconcile()
		if grew && unmarked && marked(w.get()) {
			t.Fatalf("subset a got more pods before it was marked: %s", w.condition("a"))
		}
		w.run()
		w.now = w.now.Add(time.Second)
	}
}
