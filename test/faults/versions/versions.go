// SPDX-License-Identifier: Apache-2.0

// Package versions notes every version of objects that the API server stores. Their revisions put versions of several kinds into one
// order, which is the order in which they were stored.
package versions

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Version is an object as it was stored, or as it was when it was deleted.
type Version struct {
	Object client.Object
	// Revision is the resource version as a number.
	Revision int64
	Gone     bool
}

// Recorder notes versions.
type Recorder struct {
	note func(Version)

	mu    sync.Mutex
	last  map[string]int64 // kind to revision
	err   error
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// Record starts with the objects of some kinds that exist: those of each list in a namespace, or those that are in none. It calls note for
// each version, never two at a time.
func Record(ctx context.Context, c client.WithWatch, note func(Version), namespace string, lists ...client.ObjectList) (*Recorder, error) {
	ctx, stop := context.WithCancel(ctx)
	r := &Recorder{note: note, stop: stop, last: map[string]int64{}}
	for _, list := range lists {
		if err := r.follow(ctx, c, namespace, list); err != nil {
			stop()
			return nil, err
		}
	}
	return r, nil
}

func (r *Recorder) follow(ctx context.Context, c client.WithWatch, namespace string, list client.ObjectList) error {
	in := client.InNamespace(namespace)
	if err := c.List(ctx, list, in); err != nil {
		return fmt.Errorf("listing what is to be recorded: %w", err)
	}
	if err := meta.EachListItem(list, func(o runtime.Object) error {
		r.add(watch.Event{Type: watch.Added, Object: o})
		return nil
	}); err != nil {
		return fmt.Errorf("reading what is to be recorded: %w", err)
	}
	start := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.AllowWatchBookmarks = true
		return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), &client.ListOptions{Namespace: namespace, Raw: &options})
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &toolscache.ListWatch{WatchFuncWithContext: start})
	if err != nil {
		return fmt.Errorf("watching what is to be recorded: %w", err)
	}
	r.ended.Go(func() {
		defer watcher.Stop()
		for e := range watcher.ResultChan() {
			r.add(e)
		}
	})
	return nil
}

// End stops. The error says that versions may be missing.
func (r *Recorder) End() error {
	r.stop()
	r.ended.Wait()
	return r.err
}

// Reached says whether everything up to the revision of the object was noted.
func (r *Recorder) Reached(o client.Object) bool {
	revision, err := Of(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	return err == nil && r.last[fmt.Sprintf("%T", o)] >= revision
}

// Of is the revision of an object.
func Of(o client.Object) (int64, error) {
	revision, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading a resource version: %w", err)
	}
	return revision, nil
}

func (r *Recorder) add(e watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := e.Object.(client.Object)
	if e.Type == watch.Error || !ok {
		r.err = fmt.Errorf("watching: %s", text(e.Object))
		return
	}
	revision, err := Of(o)
	if err != nil {
		r.err = err
		return
	}
	r.last[fmt.Sprintf("%T", o)] = revision
	if e.Type != watch.Bookmark {
		r.note(Version{Object: o, Revision: revision, Gone: e.Type == watch.Deleted})
	}
}

func text(o runtime.Object) string {
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Sprintf("%T", o)
	}
	return string(raw)
}
