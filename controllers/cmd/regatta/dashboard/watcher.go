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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// changeFeed tells any number of listeners that something has changed.
type changeFeed struct {
	// next is told too, unless it is nil.
	next *changeFeed

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
	for _, ch := range slices.Collect(maps.Keys(f.listeners)) {
		select {
		case ch <- struct{}{}:
		default: // the listener has not looked at the last change yet
		}
	}
	f.mu.Unlock()
	if f.next != nil {
		f.next.notifyListeners()
	}
}

// watchSource lists and watches objects. client is that of list and follow.
type watchSource struct {
	client   any
	field    string
	selector labels.Selector
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	follow   func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// watcher keeps objects of a resource in memory and tells feed when they change.
type watcher struct {
	// what names the objects in messages, such as clonesets.apps.kruise.io.
	what     string
	informer cache.SharedIndexInformer
	feed     *changeFeed

	mu  sync.Mutex
	err error
}

// newWatcher makes a watcher. trim removes from an object what the page does not show.
func newWatcher(what string, example runtime.Object, from watchSource, feed *changeFeed, trim cache.TransformFunc) *watcher {
	w := &watcher{what: what, feed: feed}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		out, err := from.list(ctx, o)
		w.noteResult(err)
		return out, err
	}
	follow := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		out, err := from.follow(ctx, o)
		w.noteResult(err)
		return out, err
	}
	w.informer = cache.NewSharedIndexInformer(target.NewListWatch(from.field, from.selector, from.client, list, follow), example, 0, cache.Indexers{})
	_ = w.informer.SetTransform(trim)                                                                       // neither fails before the informer runs
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, _ error) {}) // noteResult has it
	notify := func() { feed.notifyListeners() }
	_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
	})
	return w
}

// noteResult keeps why the last request failed; nil once one succeeds.
func (w *watcher) noteResult(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the informer lists again
	}
	w.mu.Lock()
	changed := (w.err == nil) != (err == nil)
	w.err = err
	w.mu.Unlock()
	if changed {
		w.feed.notifyListeners()
	}
}

// newObjectWatcher makes a watcher of objects of any resource. The names and namespaces "" select all.
func newObjectWatcher(client dynamic.Interface, resource schema.GroupVersionResource, namespace, name string, feed *changeFeed) *watcher {
	objects := client.Resource(resource).Namespace(namespace)
	field := ""
	if name != "" {
		field = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	return newWatcher(resource.GroupResource().String(), &unstructured.Unstructured{}, watchSource{client, field, labels.Everything(),
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) }, objects.Watch}, feed, trimManagedFields)
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

// findProblem returns why the objects are missing or not current, nil if they are current or on their way.
func (w *watcher) findProblem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err == nil:
		return nil
	case w.informer.HasSynced():
		return fmt.Errorf("%s may be out of date: %w", w.what, w.err)
	}
	return fmt.Errorf("%s: %w", w.what, w.err)
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
