// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// UserChanges passes changes by users, but not writes of the status, since a controller
// remembers its own. Labels and annotations are facts for policies: an approval may be one.
func UserChanges() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// AllObjects selects every object of a list.
func AllObjects[T client.Object](T) bool { return true }

// ListRequests returns a request for each object of a list that want selects. It is for events that concern many objects of a kind,
// such as a change of policies. The options say which objects are listed; all if there is none. A handler passes an error on to
// MissedEvents.
func ListRequests[T client.Object](ctx context.Context, reader client.Reader, list client.ObjectList, want func(T) bool, opts ...client.ListOption) (out []Request, err error) {
	err = reader.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if o, ok := item.(T); ok && want(o) {
				out = append(out, Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("listing the objects that an event concerns: %w", err)
	}
	return out, nil
}
