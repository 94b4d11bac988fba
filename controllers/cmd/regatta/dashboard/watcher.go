// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// changeFeed tells any number of listeners that something has changed.
type changeFeed struct {
	mu        sync.Mutex
	listeners map[chan struct{}]bool
}

// addListener returns a channel that receives a value after a change, and a function that ends that.
func (f *changeFeed) addListener() (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		f.listeners = map[chan struct{}]bool{}
	}
	f.listeners[ch] = true
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listeners, ch)
	}
}

func (f *changeFeed) notifyListeners() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ch := range slices.Collect(maps.Keys(f.listeners)) {
		select {
		case ch <- struct{}{}:
		default: // the listener has not looked at the last change yet
		}
	}
}

// watcher keeps objects of a resource in memory and tells feed when they change.
type watcher struct {
	// what names the objects in messages, such as CloneSets.
	what     string
	informer cache.SharedIndexInformer
	feed     *changeFeed

	mu  sync.Mutex
	err error
}

// newWatcher makes a watcher. trim removes from an object what the page does not show.
func newWatcher(what string, example runtime.Object, lw cache.ListerWatcher, feed *changeFeed, trim cache.TransformFunc) *watcher {
	w := &watcher{what: what, informer: cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{}), feed: feed}
	_ = w.informer.SetTransform(trim) // neither fails before the informer runs
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return // the informer lists again
		}
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
		feed.notifyListeners()
	})
	notify := func() { feed.notifyListeners() }
	_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
	})
	return w
}

// newObjectWatcher makes a watcher of objects of any resource. The names and namespaces "" select all.
func newObjectWatcher(client dynamic.Interface, what string, resource schema.GroupVersionResource, namespace, name string, feed *changeFeed) *watcher {
	objects := client.Resource(resource).Namespace(namespace)
	field := ""
	if name != "" {
		field = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	return newWatcher(what, &unstructured.Unstructured{}, target.NewListWatch(field, labels.Everything(), client,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) }, objects.Watch), feed, trimManagedFields)
}

// runWatch watches until ctx is done, and tells feed when the objects are complete.
func (w *watcher) runWatch(ctx context.Context) {
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), w.informer.HasSynced) {
			w.feed.notifyListeners()
		}
	}()
	w.informer.RunWithContext(ctx)
}

// findProblem returns why the objects are missing, nil if they are there or on their way. A watch that worked before is
// retried, and usually works again.
func (w *watcher) findProblem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil || w.informer.HasSynced() {
		return nil
	}
	return fmt.Errorf("watching %s: %w", w.what, w.err)
}

// listObjects returns the objects of a watcher that have type T. They must not be changed.
func listObjects[T any](w *watcher) (out []T) {
	for _, o := range w.informer.GetStore().List() {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// trimManagedFields removes what no page shows and is often half of an object.
func trimManagedFields(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
		if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
			annotations = maps.Clone(annotations)
			delete(annotations, corev1.LastAppliedConfigAnnotation)
			o.SetAnnotations(annotations)
		}
	}
	return object, nil
}
