// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// longest is the maximum length of a chain of owners.
const longest = 8

// FindSpread returns the spread that a pod belongs to; nil if there is none (WS-01).
func (t *Targets) FindSpread(ctx context.Context, namespace string, pod *corev1.Pod) (*kruise.WorkloadSpread, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil, nil
	}
	spreads, err := t.ListSpreads(ctx, namespace)
	if err != nil || len(spreads) == 0 {
		return nil, err
	}
	for ref, n := owner, 0; ref != nil && n < longest; n++ {
		if custom, err := t.followsKind(ctx, kindOf(ref)); err != nil || !custom && !slices.Contains(SupportedKinds(), kindOf(ref)) {
			return nil, err
		}
		for _, w := range spreads {
			if IsTarget(w, ref) && SelectsPod(w, pod) {
				return w, nil
			}
		}
		if ref, err = t.nextOwner(ctx, namespace, ref); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// ListSpreads returns the spreads of a namespace that do not terminate, by name. The caller must not
// change them.
func (t *Targets) ListSpreads(ctx context.Context, namespace string) ([]*kruise.WorkloadSpread, error) {
	list := &kruise.WorkloadSpreadList{}
	err := t.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("listing WorkloadSpreads: %w", err)
	}
	var out []*kruise.WorkloadSpread
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out = append(out, &list.Items[i])
		}
	}
	slices.SortFunc(out, func(a, b *kruise.WorkloadSpread) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// IsTarget reports whether an owner is the workload of a spread, in any version.
func IsTarget(w *kruise.WorkloadSpread, ref *metav1.OwnerReference) bool {
	target := w.Spec.TargetReference
	return target.Name == ref.Name && schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind() == kindOf(ref)
}

func kindOf(ref *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// SelectsPod reports whether the filter of a spread selects a pod.
func SelectsPod(w *kruise.WorkloadSpread, pod *corev1.Pod) bool {
	if w.Spec.TargetFilter == nil || w.Spec.TargetFilter.Selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(w.Spec.TargetFilter.Selector)
	return err == nil && s.Matches(labels.Set(pod.Labels))
}

// nextOwner returns the controller of an owner; nil if there is none, or if no spread can have an owner of this kind.
func (t *Targets) nextOwner(ctx context.Context, namespace string, ref *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	if len(content.IsPathSegmentName(ref.Name)) > 0 { // no object has this name, and it could not be asked for
		return nil, nil
	}
	kind := kindOf(ref)
	custom, err := t.followsKind(ctx, kind)
	switch {
	case err != nil:
		return nil, err
	case kind == schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}:
		return t.aboveSet(ctx, namespace, ref)
	case custom || slices.Contains(SupportedKinds(), kind) && t.hasWhiteList(ctx):
		return t.readController(ctx, namespace, ref)
	}
	return nil, nil
}

// hasWhiteList reports whether the white list has entries, so that the owner of any workload may be on it.
func (t *Targets) hasWhiteList(ctx context.Context) bool {
	all, err := t.readWhiteList(ctx)
	return err == nil && len(all) > 0
}

// aboveSet returns the controller of a ReplicaSet. The cache may not show a ReplicaSet that was just
// created.
func (t *Targets) aboveSet(ctx context.Context, namespace string, ref *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	set := &appsv1.ReplicaSet{}
	key := types.NamespacedName{Namespace: namespace, Name: ref.Name}
	err := t.cached.Get(ctx, key, set)
	if apierrors.IsNotFound(err) || err == nil && set.UID != ref.UID {
		err = t.live.Get(ctx, key, set)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ReplicaSet %s: %w", ref.Name, err)
	}
	return metav1.GetControllerOf(set), nil
}

// readController returns the controller of an object of any kind.
func (t *Targets) readController(ctx context.Context, namespace string, ref *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	err := t.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, o)
	if apierrors.IsForbidden(err) { // a kind that the manager may not read
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	return metav1.GetControllerOf(o), nil
}
