// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// namespaceReader returns a function that reads the labels of each namespace once, and reports whether the namespace exists.
func (k *Kind) namespaceReader(ctx context.Context) func(name string) (map[string]string, bool, error) {
	type answer struct {
		labels map[string]string
		there  bool
	}
	known := map[string]answer{}
	return func(name string) (map[string]string, bool, error) {
		if a, ok := known[name]; ok {
			return a.labels, a.there, nil
		}
		found := namespaceObject()
		err := k.cached.Get(ctx, types.NamespacedName{Name: name}, found)
		if client.IgnoreNotFound(err) != nil {
			return nil, false, fmt.Errorf("reading namespace %s: %w", name, err)
		}
		known[name] = answer{found.Labels, err == nil}
		return found.Labels, err == nil, nil
	}
}

// namespaceObject is an empty Namespace. The cache keeps only the metadata of such objects.
func namespaceObject() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return o
}

// NamespaceLabels implements rollout.KindWithSharedPods.
func (k *Kind) NamespaceLabels(ctx context.Context, names []string) (map[string]map[string]string, error) {
	read, out := k.namespaceReader(ctx), make(map[string]map[string]string, len(names))
	for _, name := range names {
		labels, there, err := read(name)
		if err != nil {
			return nil, err
		}
		if there {
			out[name] = labels
		}
	}
	return out, nil
}

// namespaceEvents makes all SidecarSets be reconciled when the labels of a namespace change: a
// namespaceSelector matches these labels, and they are facts of the pods.
func (k *Kind) namespaceEvents() rollout.RelatedObject {
	return rollout.RelatedObject{
		Object: namespaceObject(),
		Events: predicate.And(predicate.LabelChangedPredicate{}, predicate.Funcs{
			// A namespace that is created or deleted has no pods.
			CreateFunc: func(event.CreateEvent) bool { return false },
			DeleteFunc: func(event.DeleteEvent) bool { return false },
		}),
		Workloads: func(namespace client.Object) (out []types.NamespacedName) {
			ctx, list := context.Background(), &kruise.SidecarSetList{}
			if err := k.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil { // the cache lists without a request
				ctrl.Log.WithName("sidecarset-controller").Error(err, "listing SidecarSets after the labels of a namespace changed", "namespace", namespace.GetName())
			}
			for i := range list.Items {
				out = append(out, types.NamespacedName{Name: list.Items[i].Name})
			}
			return out
		},
	}
}
