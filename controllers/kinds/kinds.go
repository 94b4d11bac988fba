// SPDX-License-Identifier: Apache-2.0

// Package kinds is the table of the kinds of workloads that own pods. The manager, explanations, the
// command line, budgets, simulations and the check before an uninstall use it. A new kind needs an
// entry here, and one in package adapters once a controller acts on it.
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
	// Resource is the plural name of the resource in the API server.
	Resource string
	// Short are the names that the command line accepts besides those of the resource. Messages use the
	// first one.
	Short []string
	// Counted is true for kinds whose objects say how many pods they are to have, so that a WorkloadSpread
	// can spread these pods.
	Counted bool
	// Acting is true for kinds that a controller of this release acts on. The others have
	// only the fields above.
	Acting bool
	// Component is the name of its controller in events, HeldReason the reason of the
	// event that reports a new hold.
	Component, HeldReason string
	New                   func() client.Object
	NewList               func() client.ObjectList
	// Replicas returns how many pods an object asks for, nil if that is the default of 1. For a kind that
	// has a pod on each node the number is in the status.
	Replicas func(client.Object) *int32
	// View reads the state of a rollout from the spec and the status.
	View func(client.Object) View
}

// owners is the table. It never changes, and is made only once, since it is read for every event of a pod.
var owners = [...]Workload{{
	GroupVersionKind: kruise.GroupVersion.WithKind("CloneSet"), Resource: "clonesets", Short: []string{"clone"},
	Counted: true, Acting: true,
	Component: kruise.CloneSetComponent, HeldReason: kruise.UpdateHeld,
	New:      func() client.Object { return &kruise.CloneSet{} },
	NewList:  func() client.ObjectList { return &kruise.CloneSetList{} },
	Replicas: func(o client.Object) *int32 { return o.(*kruise.CloneSet).Spec.Replicas },
	View: func(o client.Object) View {
		set := o.(*kruise.CloneSet)
		return ViewCloneSet(set, &set.Status)
	},
}, {
	GroupVersionKind: kruise.GroupVersion.WithKind("StatefulSet"), Resource: "statefulsets", Short: []string{"asts"},
	Counted: true, Acting: true,
	Component: kruise.StatefulSetComponent, HeldReason: kruise.UpdateHeld,
	New:      func() client.Object { return &kruise.StatefulSet{} },
	NewList:  func() client.ObjectList { return &kruise.StatefulSetList{} },
	Replicas: func(o client.Object) *int32 { return o.(*kruise.StatefulSet).Spec.Replicas },
	View: func(o client.Object) View {
		set := o.(*kruise.StatefulSet)
		return ViewStatefulSet(set, &set.Status)
	},
}, {
	GroupVersionKind: kruise.GroupVersion.WithKind("DaemonSet"), Resource: "daemonsets", Short: []string{"ads", "daemon"},
	Acting:    true,
	Component: kruise.DaemonSetComponent, HeldReason: kruise.UpdateHeld,
	New:      func() client.Object { return &kruise.DaemonSet{} },
	NewList:  func() client.ObjectList { return &kruise.DaemonSetList{} },
	Replicas: func(o client.Object) *int32 { return &o.(*kruise.DaemonSet).Status.DesiredNumberScheduled },
	View: func(o client.Object) View {
		set := o.(*kruise.DaemonSet)
		return ViewDaemonSet(set, &set.Status)
	},
}}

// PodOwners are all kinds whose objects own pods.
func PodOwners() []Workload { return slices.Clone(owners[:]) }

// PodOwningResources are the resources whose deletion deletes pods: those of PodOwners, jobs, and
// resources that own workloads or jobs in turn.
func PodOwningResources() []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, w := range owners {
		out = append(out, w.GroupVersionResource())
	}
	for _, resource := range []string{"broadcastjobs", "advancedcronjobs", "uniteddeployments"} {
		out = append(out, kruise.GroupVersion.WithResource(resource))
	}
	return out
}

// ActingWorkloads are the kinds that a controller of this release acts on.
func ActingWorkloads() []Workload {
	return slices.DeleteFunc(PodOwners(), func(w Workload) bool { return !w.Acting })
}

// FindByGroupKind is the entry of a group and kind that a controller acts on.
func FindByGroupKind(kind schema.GroupKind) (Workload, bool) {
	return firstMatching(func(w *Workload) bool { return w.Kind == kind.Kind && w.Group == kind.Group })
}

// FindByObject is the entry of an object that a controller acts on, by the type of the object.
func FindByObject(o client.Object) (Workload, bool) {
	of := reflect.TypeOf(o)
	return firstMatching(func(w *Workload) bool { return reflect.TypeOf(w.New()) == of })
}

// FindByOwner is the entry of the kind that an owner reference names, if a controller acts on it.
func FindByOwner(ref metav1.OwnerReference) (Workload, bool) {
	return FindByGroupKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
}

// FindByKind is the entry of a group and kind that a question names. A question by an older release,
// or by a user, may leave the group out.
func FindByKind(kind schema.GroupKind) (Workload, bool) {
	return firstMatching(func(w *Workload) bool { return w.Kind == kind.Kind && (kind.Group == "" || w.Group == kind.Group) })
}

func firstMatching(is func(*Workload) bool) (Workload, bool) {
	for i := range owners {
		if w := &owners[i]; w.Acting && is(w) {
			return *w, true
		}
	}
	return Workload{}, false
}

// ExplainedKind is the kind of a resource that is not in the table, but whose objects are explained
// all the same: kinds that place pods in subsets, jobs, and SidecarSets, which are in no namespace.
func ExplainedKind(resource schema.GroupResource) (kind schema.GroupKind, namespaced, ok bool) {
	name, ok := map[string]string{
		"uniteddeployments": "UnitedDeployment", "workloadspreads": "WorkloadSpread",
		"broadcastjobs": "BroadcastJob", "advancedcronjobs": "AdvancedCronJob", "sidecarsets": "SidecarSet",
	}[resource.Resource]
	if !ok || resource.Group != kruise.GroupVersion.Group {
		return schema.GroupKind{}, false, false
	}
	return schema.GroupKind{Group: resource.Group, Kind: name}, name != "SidecarSet", true
}

// GroupResource is the resource of the kind in RBAC and discovery.
func (w Workload) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: w.Group, Resource: w.Resource}
}

// GroupVersionResource is the resource in the version of the table.
func (w Workload) GroupVersionResource() schema.GroupVersionResource {
	return w.GroupVersion().WithResource(w.Resource)
}

// CommandLineNames are all names that the command line accepts for the kind, in lower case: those of
// kubectl. A name that a kind of Kubernetes has too, such as statefulset, needs the group.
func (w Workload) CommandLineNames() []string {
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
func List(last string) string { return joinNames("", last) }

// JoinPlurals names the kinds for people, such as "CloneSets or StatefulSets".
func JoinPlurals(last string) string { return joinNames("s", last) }

func joinNames(suffix, last string) string {
	var names []string
	for _, w := range ActingWorkloads() {
		names = append(names, w.Kind+suffix)
	}
	if n := len(names); n > 1 {
		names = append(names[:n-2], names[n-2]+" "+last+" "+names[n-1])
	}
	return strings.Join(names, ", ")
}
