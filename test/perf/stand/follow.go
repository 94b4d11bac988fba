// SPDX-License-Identifier: Apache-2.0

package stand

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// Namespace is where programs make what they measure.
const Namespace = "perf"

// Follow calls see with each object of a kind, and with each of its versions from then on, until ctx ends. A new object has
// no version before, and one that is gone no version now.
func Follow[T client.Object](ctx context.Context, s *Stand, kind T, see func(before, now T)) error {
	config := rest.CopyConfig(s.Target.Config)
	config.UserAgent = userAgent
	c, err := cache.New(config, cache.Options{Scheme: s.Client.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return fmt.Errorf("making a cache: %w", err)
	}
	informer, err := c.GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	var none T
	handled, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if now, ok := o.(T); ok {
				see(none, now)
			}
		},
		UpdateFunc: func(old, o any) {
			before, ok := old.(T)
			now, ok2 := o.(T)
			if ok && ok2 {
				see(before, now)
			}
		},
		DeleteFunc: func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if before, ok := o.(T); ok {
				see(before, none)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	go func() { _ = c.Start(ctx) }() // it ends with ctx, and without its watch nothing is ever seen
	if !toolscache.WaitForCacheSync(ctx.Done(), handled.HasSynced) {
		return fmt.Errorf("watching %T: %w", kind, context.Cause(ctx))
	}
	return nil
}

// All does something for the numbers from 0 on, so many at a time, and gives the first error.
func All(n, together int, f func(int) error) error {
	work := make(chan int, n)
	for i := range n {
		work <- i
	}
	close(work)
	var all sync.WaitGroup
	errs := make(chan error, n)
	for range together {
		all.Go(func() {
			for i := range work {
				if err := f(i); err != nil {
					errs <- err
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// Await is Until with the limit of a step.
func (s *Stand) Await(ctx context.Context, what string, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limit, fmt.Errorf("it took longer than %s", s.Limit))
	defer cancel()
	start := time.Now()
	if err := Until(ctx, so); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	fmt.Fprintf(s.Out, "  %-40s %8.2f s\n", what, time.Since(start).Seconds())
	return nil
}

// MakeNamespace makes the namespace, and waits until pods are taken there.
func (s *Stand) MakeNamespace(ctx context.Context) error {
	if err := s.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}); err != nil {
		return fmt.Errorf("making the namespace: %w", err)
	}
	return s.Await(ctx, "the namespace", func(ctx context.Context) (bool, error) {
		account := &corev1.ServiceAccount{}
		err := s.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: "default"}, account)
		return err == nil, client.IgnoreNotFound(err)
	})
}

// NodesKnown waits until every node has its NodeImage, which the manager makes when a node has been ready for a while: that is not to be
// measured.
func (s *Stand) NodesKnown(ctx context.Context) error {
	var known atomic.Int32
	if err := Follow(ctx, s, &kruise.NodeImage{}, func(before, _ *kruise.NodeImage) {
		if before == nil {
			known.Add(1)
		}
	}); err != nil {
		return err
	}
	return s.Await(ctx, fmt.Sprintf("%d NodeImages", s.Nodes), func(context.Context) (bool, error) { return int(known.Load()) == s.Nodes, nil })
}
