// SPDX-License-Identifier: Apache-2.0

// Package scale finds the workload that a pod belongs to, and the number of replicas of a
// workload of any kind that has the subresource
// scale.
package scale

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	workloads "github.com/regatta-sh/regatta/controllers/kinds"
)

// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=*,resources=*/scale,verbs=get

// Reference names a workload of a namespace. FindWorkload accepts any version of its kind.
type Reference struct {
	APIVersion string
	Kind       string
	Name       string
}

// NewReference returns the reference to an owner.
func NewReference(owner *metav1.OwnerReference) Reference {
	return Reference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name}
}

// GroupKind returns the kind without the version.
func (r Reference) GroupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
}

// Workload is a workload as it was read.
type Workload struct {
	Reference
	UID         types.UID
	Replicas    int32
	Terminating bool
	// Selector is the selector in the subresource scale, if that was read.
	Selector string
}

// ErrNoScale is the error for kinds without the subresource scale: the number of replicas
// of their objects is unknown.
var ErrNoScale = fmt.Errorf("the kind has no subresource scale")

// Finder reads workloads: common kinds from the client's cache, any other kind by
// the subresource scale from the API server.
type Finder struct {
	client client.Client
	kinds  *kinds
}

// NewFinder makes a Finder.
func NewFinder(c client.Client, d discovery.ServerResourcesInterface) *Finder {
	return &Finder{client: c, kinds: &kinds{discovery: d, known: map[schema.GroupVersionResource]answer{}}}
}

// TopWorkload returns the workload to which the controller of a pod belongs: the Deployment of a
// ReplicaSet, or else the controller itself. It returns nil if the controller is gone.
func (f *Finder) TopWorkload(ctx context.Context, namespace string, owner *metav1.OwnerReference) (*Reference, error) {
	ref := NewReference(owner)
	if ref.GroupKind() != (schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}) {
		return &ref, nil
	}
	set := &appsv1.ReplicaSet{}
	err := f.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: owner.Name}, set)
	if apierrors.IsNotFound(err) || err == nil && set.UID != owner.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ReplicaSet %s: %w", owner.Name, err)
	}
	if up := metav1.GetControllerOfNoCopy(set); up != nil {
		ref = NewReference(up)
	}
	return &ref, nil
}

// FindWorkload reads a workload; nil if it does not exist. The error is ErrNoScale for kinds
// that cannot be read.
func (f *Finder) FindWorkload(ctx context.Context, namespace string, ref Reference) (*Workload, error) {
	var object client.Object
	var replicas func() *int32
	switch ref.GroupKind() {
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}:
		o := &appsv1.Deployment{}
		object, replicas = o, func() *int32 { return o.Spec.Replicas }
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}:
		o := &appsv1.ReplicaSet{}
		object, replicas = o, func() *int32 { return o.Spec.Replicas }
	case schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}:
		o := &appsv1.StatefulSet{}
		object, replicas = o, func() *int32 { return o.Spec.Replicas }
	default:
		w, ok := workloads.FindByGroupKind(ref.GroupKind())
		if !ok {
			return f.byScale(ctx, namespace, ref)
		}
		object = w.New()
		replicas = func() *int32 { return w.Replicas(object) }
	}
	err := f.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	w := &Workload{Reference: ref, UID: object.GetUID(), Terminating: object.GetDeletionTimestamp() != nil, Replicas: 1}
	if n := replicas(); n != nil {
		w.Replicas = *n
	}
	return w, nil
}

func (f *Finder) byScale(ctx context.Context, namespace string, ref Reference) (*Workload, error) {
	mapping, err := f.restMapping(ref)
	if meta.IsNoMatchError(err) {
		return nil, ErrNoScale
	}
	if err != nil {
		return nil, fmt.Errorf("looking up kind %s: %w", ref.Kind, err)
	}
	has, err := f.kinds.haveScale(mapping.Resource)
	if err != nil {
		return nil, err
	}
	if !has {
		return nil, ErrNoScale
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	object.SetNamespace(namespace)
	object.SetName(ref.Name)
	got := &unstructured.Unstructured{}
	got.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	err = f.client.SubResource("scale").Get(ctx, object, got)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading how many pods %s %s is to have: %w", ref.Kind, ref.Name, err)
	}
	scale := &autoscalingv1.Scale{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, scale); err != nil {
		return nil, fmt.Errorf("reading the scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	w := &Workload{Reference: ref, UID: scale.UID, Replicas: scale.Spec.Replicas, Selector: scale.Status.Selector}
	w.Terminating, err = f.isTerminating(ctx, object)
	return w, err
}

// isTerminating reports whether an object of apps.kruise.io is being deleted, which its scale
// does not show. The manager may not read objects of other kinds.
func (f *Finder) isTerminating(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	if object.GroupVersionKind().Group != kruise.GroupName {
		return false, nil
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	if err := f.client.Get(ctx, client.ObjectKeyFromObject(object), found); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return found.DeletionTimestamp != nil, nil
}

// restMapping prefers the version in the reference, and accepts any other version.
func (f *Finder) restMapping(ref Reference) (*meta.RESTMapping, error) {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	mapping, err := f.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = f.client.RESTMapper().RESTMapping(kind.GroupKind())
	}
	return mapping, err
}
