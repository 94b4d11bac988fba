// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// deleteSlowly deletes a child, which the API server keeps for a finalizer, as it does where its pods go first.
func (w *world) deleteSlowly(c *child) {
	w.Helper()
	o := c.DeepCopyObject().(client.Object)
	if err := w.api.Get(w.Context(), client.ObjectKeyFromObject(c), o); err != nil {
		w.Fatal(err)
	}
	o.SetFinalizers([]string{"foregroundDeletion"})
	if err := w.api.Update(w.Context(), o); err != nil {
		w.Fatal(err)
	}
	if err := w.api.Delete(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

// countLiving returns how many children of a subset are not being deleted.
func (w *world) countLiving(subset string) (n int) {
	w.Helper()
	for _, c := range w.children() {
		if c.subsetName() == subset && c.GetDeletionTimestamp() == nil {
			n++
		}
	}
	return n
}

// A child that is being deleted is not the one that stays of two: a user may delete it while a hold keeps both.
func TestTheLastLivingChildOfASubsetIsNoDuplicate(t *testing.T) {
	for name, pick := range map[string]func(first, second *child) *child{
		"the older one is deleted":   func(first, _ *child) *child { return first },
		"the younger one is deleted": func(_, second *child) *child { return second },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.rule(`hold contains {"target": "a", "reason": "Freeze", "message": "m"} if input.deployment.annotations.held`)
			w.settle(2 * time.Second)
			w.edit(func(d *kruise.UnitedDeployment) { d.Annotations = map[string]string{"held": "yes"} })
			first := w.duplicateChild("a")
			w.settle(2 * time.Second)
			var second *child
			for _, c := range w.children() {
				if c.subsetName() == "a" && c.GetUID() != first.GetUID() {
					second = c
				}
			}
			w.deleteSlowly(pick(first, second))
			w.edit(func(d *kruise.UnitedDeployment) { d.Annotations = nil })
			w.settle(3 * time.Second)
			if n := w.countLiving("a"); n != 1 {
				t.Errorf("%d living children are left", n)
			}
			if s := w.get().Status; s.SubsetStatuses[0].ReadyReplicas != 3 {
				t.Errorf("the status of the subset is %+v", s.SubsetStatuses[0])
			}
		})
	}
}

// The child that has the pods stays, though another one is older: it would leave the subset without any.
func TestADuplicateWithoutPodsGoesFirst(t *testing.T) {
	w := newWorld(t, nil)
	w.settle(2 * time.Second)
	first := w.child("a")
	w.now = w.now.Add(-time.Hour)
	w.duplicateChild("a") // older than the first one, and without pods
	w.now = w.now.Add(time.Hour)
	w.reconcile()
	if left := w.child("a"); w.countLiving("a") != 1 || left.GetUID() != first.GetUID() {
		t.Errorf("%d children of the subset are left, among them %s, want %s", w.countLiving("a"), left.GetName(), first.GetName())
	}
}

// The cache shows late that a child is being deleted: no other one is deleted for its sake.
func TestADuplicateStaysWhileTheCacheIsBehind(t *testing.T) {
	for name, end := range map[string]func(*world, *child){
		"the other one is being deleted": func(w *world, c *child) { w.deleteSlowly(c) },
		"the other one is gone": func(w *world, c *child) {
			if err := w.api.Delete(w.Context(), c.DeepCopyObject().(client.Object)); err != nil {
				w.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.settle(2 * time.Second)
			first := w.duplicateChild("a")
			seen := &kruise.CloneSetList{}
			if err := w.api.List(t.Context(), seen, client.InNamespace("shop")); err != nil {
				t.Fatal(err)
			}
			end(w, first)
			w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if sets, ok := list.(*kruise.CloneSetList); ok {
					seen.DeepCopyInto(sets)
					return nil
				}
				return c.List(ctx, list, opts...)
			}})
			if again := w.reconcile(); again <= 0 || again > time.Second {
				t.Errorf("the controller looks again after %s", again)
			}
			w.r.Client = w.api
			if n := w.countLiving("a"); n != 1 {
				t.Errorf("%d living children are left", n)
			}
			w.settle(2 * time.Second)
			if n := w.countLiving("a"); n != 1 {
				t.Errorf("%d living children are left in the end", n)
			}
		})
	}
}
