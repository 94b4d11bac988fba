// SPDX-License-Identifier: Apache-2.0

// Package kinds is the table of the kinds of workloads that own pods. The manager,
// explanations, the command line, budgets and the check before an uninstall go by it: a new
// kind is one more entry.
package kinds

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Workload describes one kind.
type Workload struct {
	schema.GroupVersionKind
	// Resource is the plural that the API server knows it by.
	Resource string
	// Acting is true for kinds that a controller of this release acts on. The others have
	// only the fields above.
	Acting bool
	// Short are the names that the command line takes besides those of the resource, the
	// first of them in messages.
	Short []string
	// Component is the name of its controller in events, HeldReason the reason of the
	// event that reports a new hold.
	Component, HeldReason string
	New                   func() client.Object
	NewList               func() client.ObjectList
	// Replicas is how many pods an object asks for, nil where it leaves that to the
	// default of 1.
	Replicas func(client.Object) *int32
	// View reads what the spec and the status say of a rollout.
	View func(client.Object) View
}

// Owners are all kinds whose objects own pods.
func Owners() []Workload {
	return []Workload{{
		GroupVersionKind: kruise.GroupVersion.WithKind("CloneSet"), Resource: "clonesets", Acting: true,
		Short: []string{"clone"}, Component: kruise.CloneSetComponent, HeldReason: kruise.CloneSetUpdateHeldReason,
		New:      func() client.Object { return &kruise.CloneSet{} },
		NewList:  func() client.ObjectList { return &kruise.CloneSetList{} },
		Replicas: func(o client.Object) *int32 { return o.(*kruise.CloneSet).Spec.Replicas },
		View:     func(o client.Object) View { return cloneSet(o.(*kruise.CloneSet)) },
	}, {
		GroupVersionKind: kruise.GroupVersion.WithKind("StatefulSet"), Resource: "statefulsets",
	}, {
		GroupVersionKind: kruise.GroupVersion.WithKind("DaemonSet"), Resource: "daemonsets",
	}}
}

// Workloads are the kinds that a controller of this release acts on.
func Workloads() []Workload {
	return slices.DeleteFunc(Owners(), func(w Workload) bool { return !w.Acting })
}

// Find is the entry of a group and kind that a controller acts on.
func Find(kind schema.GroupKind) (Workload, bool) {
	return first(func(w Workload) bool { return w.GroupKind() == kind })
}

// Named is the entry of a kind that a controller acts on, by its name.
func Named(kind string) (Workload, bool) {
	return first(func(w Workload) bool { return w.Kind == kind })
}

// Of is the entry of an object that a controller acts on, by the type of the object.
func Of(o client.Object) (Workload, bool) {
	return first(func(w Workload) bool { return reflect.TypeOf(w.New()) == reflect.TypeOf(o) })
}

// Owner is the entry of what an owner reference names, if a controller acts on it.
func Owner(ref metav1.OwnerReference) (Workload, bool) {
	return Find(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
}

func first(is func(Workload) bool) (Workload, bool) {
	all := Workloads()
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return Workload{}, false
}

// GroupResource is what RBAC and discovery know the kind by.
func (w Workload) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: w.Group, Resource: w.Resource}
}

// GroupVersionResource is the resource in the version of the table.
func (w Workload) GroupVersionResource() schema.GroupVersionResource {
	return w.GroupVersion().WithResource(w.Resource)
}

// Words are all names that the command line takes for the kind, in lower case: those of
// kubectl. A name that Kubernetes has itself, such as statefulset, needs the group.
func (w Workload) Words() []string {
	singular, group := strings.ToLower(w.Kind), "."+w.Group
	out := slices.Clone(w.Short)
	if !scheme.Scheme.Recognizes(appsv1.SchemeGroupVersion.WithKind(w.Kind)) {
		out = append(out, singular, w.Resource)
	}
	out = append(out, singular+group, w.Resource+group)
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		out = append(out, w.Resource+"."+version+group)
	}
	return out
}

// Read makes an object of the kind from one that a dynamic client read.
func (w Workload) Read(u *unstructured.Unstructured) (client.Object, error) {
	object := w.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", w.Kind, err)
	}
	return object, nil
}

// List names the kinds for people, such as "CloneSet or StatefulSet".
func List(last string) string { return list("", last) }

// Plurals names the kinds for people, such as "CloneSets or StatefulSets".
func Plurals(last string) string { return list("s", last) }

func list(suffix, last string) string {
	var names []string
	for _, w := range Workloads() {
		names = append(names, w.Kind+suffix)
	}
	if n := len(names); n > 1 {
		names = append(names[:n-2], names[n-2]+" "+last+" "+names[n-1])
	}
	return strings.Join(names, ", ")
}
