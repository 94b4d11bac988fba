// SPDX-License-Identifier: Apache-2.0

package podscope

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// KindOf returns the kind of an object, or of the objects of a list, if claims of that kind are for the pods of a namespace; empty
// for others.
func KindOf(o runtime.Object) string {
	switch o.(type) {
	case *kruise.WorkloadSpread, *kruise.WorkloadSpreadList:
		return "WorkloadSpread"
	case *kruise.PersistentPodState, *kruise.PersistentPodStateList:
		return "PersistentPodState"
	}
	return ""
}

// Reader reads from a cache. While a pod is admitted, it lists the WorkloadSpreads and PersistentPodStates of a namespace in the
// API server if a claim is for one that the cache does not have: a pod may be created right after that object.
type Reader struct {
	client.Reader
	Live client.Reader
	// Claims returns the claims of the configuration that a pod was sent by, by its token. No object is awaited if
	// it is nil.
	Claims func(ctx context.Context, token string) ([]PendingSelector, error)
}

// List implements client.Reader.
func (r Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := r.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	kind, token := KindOf(list), TokenOf(ctx)
	if kind == "" || token == "" || r.Claims == nil {
		return nil
	}
	claims, err := r.Claims(ctx, token)
	if err != nil {
		return err
	}
	if complete, err := hasAwaited(list, kind, (&client.ListOptions{}).ApplyOptions(opts).Namespace, claims); complete || err != nil {
		return err
	}
	// The list of the cache must not be overwritten.
	live := reflect.New(reflect.TypeOf(list).Elem())
	if err := r.Live.List(ctx, live.Interface().(client.ObjectList), opts...); err != nil {
		return fmt.Errorf("listing %ss that were written a moment ago: %w", kind, err)
	}
	reflect.ValueOf(list).Elem().Set(live.Elem())
	return nil
}

// hasAwaited reports whether a list has all objects of a namespace that claims name.
func hasAwaited(list client.ObjectList, kind, namespace string, claims []PendingSelector) (bool, error) {
	if slices.ContainsFunc(claims, PendingSelector.IsUnnamed) {
		return false, nil
	}
	awaited := map[string]types.UID{}
	for _, c := range claims {
		if c.Kind == kind && (namespace == "" || c.Namespace == namespace) {
			awaited[c.ObjectKey()] = c.UID
		}
	}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if o, ok := item.(client.Object); ok && o.GetDeletionTimestamp() == nil {
			key := ObjectKey(kind, o.GetNamespace(), o.GetName())
			if uid := awaited[key]; uid == "" || uid == o.GetUID() {
				delete(awaited, key)
			}
		}
		return nil
	})
	return len(awaited) == 0, err
}
