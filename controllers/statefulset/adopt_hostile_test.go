// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// revisions has the resource versions of the revisions by name, with the workload that each is of.
func (w *world) revisions() map[string]string {
	w.t.Helper()
	list := &appsv1.ControllerRevisionList{}
	if err := w.c.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		owner := "no controller"
		if ref := metav1.GetControllerOf(&list.Items[i]); ref != nil {
			owner = ref.Name
		}
		out[list.Items[i].Name] = fmt.Sprint(owner, "@", list.Items[i].ResourceVersion)
	}
	return out
}

// Two sets of one selector keep apart by the names of their pods. One of them is deleted, its pods stay, and it is made again.
func TestASetOfTheSameSelectorTakesNoRevisionOfAnother(t *testing.T) {
	web := testSet(2, func(set *kruise.StatefulSet) {
		set.Name, set.UID = "web", "web"
		set.Spec.Template.Spec.Containers[0].Image = "web:1"
	})
	again := web.DeepCopy()
	again.UID = "web again"
	w := newWorld(t, testEngine(t), Gates{}, testSet(1, nil), web)
	settle := func() {
		for range 20 {
			w.reconcile()
			if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}); err != nil {
				t.Fatal(err)
			}
			w.note()
			w.kubelet()
		}
	}
	settle()
	w.did()
	was := w.revisions()
	if err := w.c.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	for _, p := range w.pods() {
		if p.Name != "db-0" {
			p.OwnerReferences = nil
			if err := w.c.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := &appsv1.ControllerRevisionList{}
	if err := w.c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if rev := &list.Items[i]; metav1.GetControllerOf(rev).Name == "web" {
			rev.OwnerReferences = nil
			if err := w.c.Update(t.Context(), rev); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.reconcile()
	again.ResourceVersion = ""
	if err := w.c.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	settle()
	if got := w.did(); got != "" {
		t.Errorf("it did %s, want nothing: all pods are as the template says; the revisions were %v and are %v", got, was, w.revisions())
	}
}

func TestARevisionThatIsRelabelledIsNotTakenAndReleasedForEver(t *testing.T) {
	w := newWorld(t, testEngine(t), Gates{}, testSet(1, nil))
	w.settle()
	list := &appsv1.ControllerRevisionList{}
	if err := w.c.List(t.Context(), list); err != nil || len(list.Items) != 1 {
		t.Fatal(list.Items, err)
	}
	rev := &list.Items[0]
	rev.Labels = map[string]string{"app": "other"}
	if err := w.c.Update(t.Context(), rev, client.FieldOwner("user")); err != nil {
		t.Fatal(err)
	}
	w.settle()
	before := w.revisions()
	for range 10 {
		w.now = w.now.Add(1e12) // longer than a write of our own is remembered
		w.reconcile()
		w.reconcile()
	}
	if after := w.revisions(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the revisions were %v and are %v", before, after)
	}
}
