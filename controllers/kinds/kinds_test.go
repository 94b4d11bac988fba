// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

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
	for _, w := range kinds.Owners() {
		want, err := scheme.New(w.GroupVersionKind)
		if err != nil {
			t.Errorf("%s is not in the scheme: %v", w.Kind, err)
			continue
		}
		for _, word := range w.Words() {
			if other, taken := words[word]; taken {
				t.Errorf("%s is a word for %s and for %s", word, other, w.Kind)
			}
			words[word] = w.Kind
		}
		if found, ok := kinds.Find(w.GroupKind()); ok != w.Acting || ok && found.Kind != w.Kind {
			t.Errorf("%s is found as %q", w.Kind, found.Kind)
		}
		if !w.Acting {
			continue
		}
		if got := reflect.TypeOf(w.New()); got != reflect.TypeOf(want) {
			t.Errorf("New of %s makes a %s", w.Kind, got)
		}
		if found, ok := kinds.Of(w.New()); !ok || found.GroupVersionKind != w.GroupVersionKind {
			t.Errorf("an object of %s is found as %s", w.GroupVersionKind, found.GroupVersionKind)
		}
		if list, err := scheme.New(w.GroupVersion().WithKind(w.Kind + "List")); err != nil || reflect.TypeOf(list) != reflect.TypeOf(w.NewList()) {
			t.Errorf("NewList of %s makes a %T: %v", w.Kind, w.NewList(), err)
		}
		if w.Component == "" || w.HeldReason == "" || w.Resource == "" || !slices.Contains(w.Words(), w.Resource+"."+w.Group) {
			t.Errorf("%s is not whole: %+v", w.Kind, w)
		}
		w.Replicas(w.New())
		if v := w.View(w.New()); v.Complete() && v.Wanted > 0 {
			t.Errorf("a %s without status is complete: %+v", w.Kind, v)
		}
	}
}
