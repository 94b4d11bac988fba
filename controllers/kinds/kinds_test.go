// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

// Whatever goes by the table calls the functions of every entry, so none may be missing,
// and objects and lists have to be those of the kind.
func TestEveryEntryIsWhole(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kruise.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	words := map[string]string{ // what the command line takes for kinds of Kubernetes
		"pod": "Pod", "pods": "Pod", "po": "Pod", "deployment": "Deployment", "deployments": "Deployment",
		"statefulset": "StatefulSet", "statefulsets": "StatefulSet", "sts": "StatefulSet",
		"daemonset": "DaemonSet", "daemonsets": "DaemonSet", "ds": "DaemonSet",
	}
	for _, w := range kinds.PodOwners() {
		want, err := scheme.New(w.GroupVersionKind)
		if err != nil {
			t.Errorf("%s is not in the scheme: %v", w.Kind, err)
			continue
		}
		for _, word := range w.CommandLineNames() {
			if other, taken := words[word]; taken {
				t.Errorf("%s is a word for %s and for %s", word, other, w.Kind)
			}
			words[word] = w.Kind
		}
		if found, ok := kinds.FindByGroupKind(w.GroupKind()); ok != w.Acting || ok && found.Kind != w.Kind {
			t.Errorf("%s is found as %q", w.Kind, found.Kind)
		}
		if !w.Acting {
			continue
		}
		if got := reflect.TypeOf(w.New()); got != reflect.TypeOf(want) {
			t.Errorf("New of %s makes a %s", w.Kind, got)
		}
		if found, ok := kinds.FindByObject(w.New()); !ok || found.GroupVersionKind != w.GroupVersionKind {
			t.Errorf("an object of %s is found as %s", w.GroupVersionKind, found.GroupVersionKind)
		}
		if list, err := scheme.New(w.GroupVersion().WithKind(w.Kind + "List")); err != nil || reflect.TypeOf(list) != reflect.TypeOf(w.NewList()) {
			t.Errorf("NewList of %s makes a %T: %v", w.Kind, w.NewList(), err)
		}
		if found, ok := kinds.FindByKind(schema.GroupKind{Kind: w.Kind}); !ok || found.GroupVersionKind != w.GroupVersionKind {
			t.Errorf("a question about %s without its group finds %s", w.Kind, found.GroupVersionKind)
		}
		if found, ok := kinds.FindByKind(schema.GroupKind{Group: "apps", Kind: w.Kind}); ok {
			t.Errorf("a question about %s of apps finds %s", w.Kind, found.GroupVersionKind)
		}
		if w.Component == "" || w.HeldReason == "" || w.Resource == "" || !slices.Contains(w.CommandLineNames(), w.Resource+"."+w.Group) {
			t.Errorf("%s is not whole: %+v", w.Kind, w)
		}
		w.Replicas(w.New())
		if v := w.View(w.New()); v.IsComplete() && v.Wanted > 0 {
			t.Errorf("a %s without status is complete: %+v", w.Kind, v)
		}
	}
}

// The short names of the resources are those of the CRDs, but for what Kubernetes has itself.
func TestTheShortNameOfTheCRDFindsTheKind(t *testing.T) {
	for word, want := range map[string]string{"clone": "CloneSet", "asts": "StatefulSet", "ads": "DaemonSet", "daemon": "DaemonSet"} {
		i := slices.IndexFunc(kinds.PodOwners(), func(w kinds.Workload) bool { return slices.Contains(w.CommandLineNames(), word) })
		if i < 0 || kinds.PodOwners()[i].Kind != want {
			t.Errorf("%s finds entry %d, want %s", word, i, want)
		}
	}
}

func TestWhoeverChangesTheListLeavesTheTable(t *testing.T) {
	kinds.PodOwners()[0].Kind = "Other"
	if got := kinds.PodOwners()[0].Kind; got != "CloneSet" {
		t.Errorf("the table has a %s now", got)
	}
}

func BenchmarkOwner(b *testing.B) {
	ref := metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := kinds.FindByOwner(ref); !ok {
			b.Fatal("it is not found")
		}
	}
}
