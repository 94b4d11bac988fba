// SPDX-License-Identifier: Apache-2.0

// Package recovery recovers from panics of functions that run in goroutines of controller-runtime and
// client-go, so that they do not end the process: event handlers, predicates, mapping and index
// functions, transforms, and runnables.
package recovery

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/engine/recovery"
)

// NewCache makes a cache whose informers continue after a panic of a transform, an index function, a
// predicate, a mapping function or an event handler. Only the event or the index of that object is lost.
func NewCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	opts.DefaultTransform = wrapTransform(opts.DefaultTransform)
	by := make(map[client.Object]cache.ByObject, len(opts.ByObject))
	for object, options := range opts.ByObject {
		options.Transform = wrapTransform(options.Transform)
		by[object] = options
	}
	if opts.ByObject != nil {
		opts.ByObject = by
	}
	c, err := cache.New(config, opts)
	if err != nil {
		return nil, err
	}
	return recoveringCache{c}, nil
}

// wrapTransform keeps an object as it is if its transform panics.
func wrapTransform(f toolscache.TransformFunc) toolscache.TransformFunc {
	if f == nil {
		return nil
	}
	return func(object any) (out any, err error) {
		defer func() {
			if value := recover(); value != nil {
				_ = recovery.ReportPanic("transform", value)
				out, err = object, nil
			}
		}()
		return f(object)
	}
}

type recoveringCache struct{ cache.Cache }

// IndexField implements client.FieldIndexer.
func (c recoveringCache) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	return c.Cache.IndexField(ctx, object, field, wrapIndexer(extract))
}

func wrapIndexer(extract client.IndexerFunc) client.IndexerFunc {
	return func(object client.Object) (values []string) {
		_ = recovery.Call("index", func() error { values = extract(object); return nil })
		return values
	}
}

// GetInformer implements cache.Informers.
func (c recoveringCache) GetInformer(ctx context.Context, object client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	i, err := c.Cache.GetInformer(ctx, object, opts...)
	if err != nil {
		return nil, err
	}
	return informer{i}, nil
}

// GetInformerForKind implements cache.Informers.
func (c recoveringCache) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	i, err := c.Cache.GetInformerForKind(ctx, kind, opts...)
	if err != nil {
		return nil, err
	}
	return informer{i}, nil
}

type informer struct{ cache.Informer }

// AddEventHandler implements cache.Informer.
func (i informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandler(eventHandler{h})
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (i informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithResyncPeriod(eventHandler{h}, resync)
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, opts toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithOptions(eventHandler{h}, opts)
}

type eventHandler struct {
	toolscache.ResourceEventHandler
}

// OnAdd implements toolscache.ResourceEventHandler.
func (h eventHandler) OnAdd(object any, initial bool) {
	_ = recovery.Call("event", func() error { h.ResourceEventHandler.OnAdd(object, initial); return nil })
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (h eventHandler) OnUpdate(before, after any) {
	_ = recovery.Call("event", func() error { h.ResourceEventHandler.OnUpdate(before, after); return nil })
}

// OnDelete implements toolscache.ResourceEventHandler.
func (h eventHandler) OnDelete(object any) {
	_ = recovery.Call("event", func() error { h.ResourceEventHandler.OnDelete(object); return nil })
}
