// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/namespaces"
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
		found := namespaces.NewObject()
		err := k.cached.Get(ctx, types.NamespacedName{Name: name}, found)
		if client.IgnoreNotFound(err) != nil {
			return nil, false, fmt.Errorf("reading namespace %s: %w", name, err)
		}
		known[name] = answer{found.Labels, err == nil}
		return found.Labels, err == nil, nil
	}
}

// namespaceEvents makes all SidecarSets be reconciled when the labels of a namespace change: a
// namespaceSelector matches these labels, and they are facts of the pods.
func (k *Kind) namespaceEvents() rollout.RelatedObject {
	return rollout.RelatedObject{
		Object: namespaces.NewObject(),
		Events: namespaces.LabelChangePredicate(),
		Workloads: func(ctx context.Context, _ client.Object) ([]reconcile.Request, error) {
			return reconcile.ListRequests(ctx, k.cached, &kruise.SidecarSetList{}, reconcile.AllObjects[*kruise.SidecarSet])
		},
	}
}
