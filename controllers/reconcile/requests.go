// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
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

// ListRequests returns a request for each object of a list that want selects. It is for events that
// concern all objects of a kind, such as a change of policies. An error is logged, since
// an event handler cannot return it.
func ListRequests[T client.Object](ctx context.Context, reader client.Reader, list client.ObjectList, want func(T) bool) (out []Request) {
	err := reader.List(ctx, list, client.UnsafeDisableDeepCopy)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if o, ok := item.(T); ok && want(o) {
				out = append(out, Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the objects of a kind after an event that concerns all of them", "list", fmt.Sprintf("%T", list))
	}
	return out
}
