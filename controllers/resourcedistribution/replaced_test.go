// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func TestCopiesThatCannotBeUpdated(t *testing.T) {
	run := serve(t, "r").run
	replace := func(w *world, old, fresh string) {
		w.Helper()
		w.edit(func(d *kruise.ResourceDistribution) {
			d.Spec.Resource.Raw = bytes.Replace(d.Spec.Resource.Raw, []byte(old), []byte(fresh), 1)
		})
	}
	run("a Secret of another type is made again, with what others added to its metadata", func(w *world) {
		a := w.namespace("a")
		w.distribute(secret, included(a))
		w.settle()
		s := w.secret(a)
		before := s.UID
		s.Labels["mine"] = "yes"
		w.do(w.api.Update(w.Context(), s))
		replace(w, `"kind":"Secret"`, `"kind":"Secret","type":"example.com/key"`)
		w.settle()
		w.status("1/1/0")
		if s = w.secret(a); s == nil || s.Type != "example.com/key" || s.UID == before || s.Labels["mine"] != "yes" || string(s.Data["key"]) != "one" {
			w.Errorf("the copy is %v", s)
		}
		if o := metav1.GetControllerOf(s); o == nil || o.UID != w.get().UID {
			w.Errorf("it is owned by %v", s.OwnerReferences)
		}
	})
	run("a Secret that is immutable is made again when its data changes, and when it is to be mutable", func(w *world) {
		a := w.namespace("a")
		w.distribute(`{apiVersion: v1, kind: Secret, immutable: true, metadata: {name: ca, labels: {a: b}}, stringData: {key: one}}`, included(a))
		w.settle()
		first := w.secret(a)
		replace(w, `"a":"b"`, `"a":"c"`)
		w.settle()
		if s := w.secret(a); s.UID != first.UID || s.Labels["a"] != "c" {
			w.Errorf("for a label it is %v", s)
		}
		replace(w, `"one"`, `"two"`)
		w.settle()
		second := w.secret(a)
		if second.UID == first.UID || string(second.Data["key"]) != "two" || !*second.Immutable {
			w.Errorf("for data it is %v", second)
		}
		replace(w, `"immutable":true`, `"immutable":false`)
		w.settle()
		if s := w.secret(a); s.UID == second.UID || *s.Immutable {
			w.Errorf("to be mutable it is %v", s)
		}
		w.status("1/1/0")
	})
	run("a ConfigMap that is immutable is made again when its data changes", func(w *world) {
		a := w.namespace("a")
		w.distribute(`{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: ca}, data: {key: one}}`, included(a))
		w.settle()
		replace(w, `"one"`, `"two"`)
		w.settle()
		c := &corev1.ConfigMap{}
		w.do(w.api.Get(w.Context(), client.ObjectKey{Namespace: a, Name: "ca"}, c))
		if c.Data["key"] != "two" {
			w.Errorf("the copy is %v", c)
		}
		w.status("1/1/0")
	})
	run("a copy with finalizers is waited for before it is made again", func(w *world) {
		a := w.namespace("a")
		w.distribute(secret, included(a))
		w.settle()
		s := w.secret(a)
		s.Finalizers = []string{"example.com/keep"}
		w.do(w.api.Update(w.Context(), s))
		replace(w, `"kind":"Secret"`, `"kind":"Secret","type":"example.com/key"`)
		for range 2 {
			if _, err := w.reconcile(); err == nil {
				w.Error("nothing tries it again")
			}
			w.status("1/0/1 UpdateResourceFailed [" + a + "]: the copy is being deleted, and is created again once its finalizers are gone")
		}
		s = w.secret(a)
		s.Finalizers = nil
		w.do(w.api.Update(w.Context(), s))
		w.settle()
		if s = w.secret(a); s == nil || s.Type != "example.com/key" {
			w.Errorf("the copy is %v", s)
		}
	})
	run("a Secret that the API server refuses leaves the copy there, and its text is nowhere", func(w *world) {
		a := w.namespace("a")
		w.distribute(secret, included(a))
		w.settle()
		replace(w, `"kind":"Secret"`, `"kind":"Secret","type":"kubernetes.io/dockerconfigjson"`)
		replace(w, `{"key":"one"}`, `{".dockerconfigjson":"hunter2"}`)
		_, err := w.reconcile()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			w.Errorf("the log says %v", err)
		}
		if s := w.secret(a); s == nil || string(s.Data["key"]) != "one" {
			w.Errorf("the copy is %v", s)
		}
		w.status("1/0/1 UpdateResourceFailed [" + a + "]: distributing Secret ca: the API server answers 422 Invalid (data[.dockerconfigjson]: Invalid value); its message is left out, since it may repeat the Secret")
	})
	run("the status reports a resource that is no proper Secret without its text", func(w *world) {
		w.distribute(`{apiVersion: v1, kind: Secret, metadata: {name: ca}, stringData: {key: 12345678}}`, included())
		_, err := w.reconcile()
		if got := <-w.events.Events; err == nil || strings.Contains(got+err.Error(), "1234") || !strings.HasPrefix(got, "Warning InvalidResource reading spec.resource: stringData") {
			w.Errorf("got %q, %v", got, err)
		}
	})
}
