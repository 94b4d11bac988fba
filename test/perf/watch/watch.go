// SPDX-License-Identifier: Apache-2.0

// Package watch follows workloads and their pods by one watch each, and takes
// the times at which they reach a goal. Polling a thousand pods would cost the
// cluster that is measured more than it does.
package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A View is a workload and its pods as they are now.
type View struct {
	Objects     Objects
	Pods        int // without those that are terminating
	Available   int
	Terminating int
	Images      map[string]Image
}

// Objects are those of a workload that exist, by their resources.
type Objects map[schema.GroupVersionResource]*unstructured.Unstructured

// An Image counts the pods whose spec names one image for a container. Those that are
// available run it, too.
type Image struct{ Pods, Available int }

// Watcher follows all workloads of some kinds in one namespace.
type Watcher struct {
	label string

	mu      sync.Mutex
	pods    map[types.UID]pod
	views   map[string]*View
	race    *Race
	changed time.Time
}

// A Resource is a kind of object to watch. Cluster says that it is in no namespace.
type Resource struct {
	schema.GroupVersionResource
	Cluster bool
}

// New watches a namespace until ctx ends. label is that of the pods with the
// name of their workload.
func New(ctx context.Context, typed kubernetes.Interface, other dynamic.Interface, namespace, label string, kinds ...Resource) (*Watcher, error) {
	w := &Watcher{label: label, pods: map[types.UID]pod{}, views: map[string]*View{}}
	pods := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(namespace))
	if _, err := pods.Core().V1().Pods().Informer().AddEventHandler(handler(w.seePod, w.losePod)); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	objects := dynamicinformer.NewFilteredDynamicSharedInformerFactory(other, 0, namespace, nil)
	everywhere := dynamicinformer.NewDynamicSharedInformerFactory(other, 0)
	var synced []cache.InformerSynced
	for _, kind := range kinds {
		from := objects
		if kind.Cluster {
			from = everywhere
		}
		informer := from.ForResource(kind.GroupVersionResource).Informer()
		if _, err := informer.AddEventHandler(w.objects(kind.GroupVersionResource)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind.Resource, err)
		}
		synced = append(synced, informer.HasSynced)
	}
	synced = append(synced, pods.Core().V1().Pods().Informer().HasSynced)
	pods.Start(ctx.Done())
	objects.Start(ctx.Done())
	everywhere.Start(ctx.Done())
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !cache.WaitForCacheSync(limited.Done(), synced...) {
		return nil, errors.New("the watches did not start within a minute: are the CRDs installed?")
	}
	return w, nil
}

func handler[T any](see, lose func(T)) cache.ResourceEventHandlerFuncs {
	with := func(f func(T), o any) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if typed, ok := o.(T); ok {
			f(typed)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { with(see, o) },
		UpdateFunc: func(_, o any) { with(see, o) },
		DeleteFunc: func(o any) { with(lose, o) },
	}
}

func (w *Watcher) view(group string) *View {
	if w.views[group] == nil {
		w.views[group] = &View{Objects: Objects{}, Images: map[string]Image{}}
	}
	return w.views[group]
}

// change has one workload changed, and looks whether that reaches its goal.
func (w *Watcher) change(group string, f func(*View)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.view(group)
	f(v)
	w.changed = time.Now()
	if w.race != nil {
		w.race.look(group, v, w.changed)
	}
}

func (w *Watcher) seePod(p *corev1.Pod) {
	now := factsOf(p, w.label)
	w.change(now.group, func(v *View) {
		if old, ok := w.pods[p.UID]; ok {
			v.count(old, -1)
		}
		w.pods[p.UID] = now
		v.count(now, 1)
	})
}

func (w *Watcher) losePod(p *corev1.Pod) {
	w.change(p.Labels[w.label], func(v *View) {
		if old, ok := w.pods[p.UID]; ok {
			v.count(old, -1)
			delete(w.pods, p.UID)
		}
	})
}

// objects takes what is seen of one resource. The names of objects distinguish
// workloads.
func (w *Watcher) objects(kind schema.GroupVersionResource) cache.ResourceEventHandlerFuncs {
	return handler(func(o *unstructured.Unstructured) {
		w.change(o.GetName(), func(v *View) { v.Objects[kind] = o })
	}, func(o *unstructured.Unstructured) {
		w.change(o.GetName(), func(v *View) { delete(v.Objects, kind) })
	})
}

// Settle waits until nothing has changed for a while and no pod is terminating.
func (w *Watcher) Settle(ctx context.Context, quiet time.Duration) error {
	for {
		if w.settled(quiet) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the cluster to settle: %w", ctx.Err())
		case <-time.After(quiet / 10):
		}
	}
}

func (w *Watcher) settled(quiet time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.views {
		if v.Terminating > 0 {
			return false
		}
	}
	return time.Since(w.changed) > quiet
}
