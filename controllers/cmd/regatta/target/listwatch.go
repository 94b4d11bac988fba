// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// NewListWatch lists and watches the objects that a field selector and a label selector select. source is the client that
// list and follow use; it tells whether the client supports lists that are streamed as a watch.
func NewListWatch(field string, selector labels.Selector, source any,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error), follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) cache.ListerWatcher {
	limit := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector, o.LabelSelector = field, selector.String()
		return o
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, limit(o)) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return follow(ctx, limit(o)) },
	}, source)
}
