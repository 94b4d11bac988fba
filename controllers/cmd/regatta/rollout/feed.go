// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

// poll is how often the manager is asked.
const poll = time.Second

// asker asks the manager why.
type asker interface {
	FetchExplanation(ctx context.Context, q managers.Question) (explain.Reply, []error, error)
}

// feed watches a workload, its pods and its events, and asks the manager about the workload.
type feed struct {
	about   target.Target
	kind    kinds.Workload
	objects cache.SharedIndexInformer
	pods    cache.SharedIndexInformer
	events  cache.SharedIndexInformer
	asker   asker

	mu      sync.Mutex
	last    client.Object
	answer  *explain.Answer
	silence error
	blind   map[string]error
}

// newFeed reads the workload once, so that a wrong name fails at once.
func newFeed(ctx context.Context, core kubernetes.Interface, objects dynamic.Interface, a asker, about target.Target) (*feed, error) {
	kind, ok := kinds.FindByGroupKind(about.GroupKind())
	if !ok {
		return nil, fmt.Errorf("a %s has no rollout to follow; want a %s", about.Kind, kinds.List("or"))
	}
	resource := objects.Resource(kind.GroupVersionResource()).Namespace(about.Namespace)
	u, err := resource.Get(ctx, about.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no %s %s in namespace %s", kind.Kind, about.Name, about.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kind.Kind, err)
	}
	object, err := kind.Read(u)
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(kind.View(object).Selector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	f := &feed{about: about, kind: kind, asker: a, last: object, blind: map[string]error{}}
	named := fields.OneTermEqualSelector("metadata.name", about.Name).String()
	involved := fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.kind", kind.Kind), fields.OneTermEqualSelector("involvedObject.name", about.Name),
	).String()
	f.objects = f.newInformer("the "+kind.Kind, &unstructured.Unstructured{}, target.NewListWatch(named, labels.Everything(), objects,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) }, resource.Watch))
	pods, events := core.CoreV1().Pods(about.Namespace), core.CoreV1().Events(about.Namespace)
	f.pods = f.newInformer("its pods", &corev1.Pod{}, target.NewListWatch("", selector, core,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }, pods.Watch))
	f.events = f.newInformer("its events", &corev1.Event{}, target.NewListWatch(involved, labels.Everything(), core,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return events.List(ctx, o) }, events.Watch))
	return f, nil
}

// newInformer keeps objects in memory, without the fields that the view does not
// use. If a kind cannot be watched, the view says so and goes on without it.
func (f *feed) newInformer(what string, example runtime.Object, lw cache.ListerWatcher) cache.SharedIndexInformer {
	i := cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{})
	_ = i.SetTransform(trimObject) // neither fails before the informer runs
	_ = i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return // the informer lists again
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.blind[what] = fmt.Errorf("watching %s: %w", what, err)
	})
	return i
}

func trimObject(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Labels: o.Labels,
				OwnerReferences: o.OwnerReferences, DeletionTimestamp: o.DeletionTimestamp,
			},
			Status: corev1.PodStatus{Conditions: o.Status.Conditions},
		}, nil
	case *corev1.Event:
		o.ManagedFields = nil
	}
	return object, nil
}

// runWatches watches and asks until ctx is done.
func (f *feed) runWatches(ctx context.Context) {
	var all sync.WaitGroup
	for _, i := range []cache.SharedIndexInformer{f.objects, f.pods, f.events} {
		all.Go(func() { i.RunWithContext(ctx) })
	}
	all.Go(func() {
		ticker := time.NewTicker(poll)
		defer ticker.Stop()
		for {
			f.pollExplanation(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	all.Wait()
}

func (f *feed) pollExplanation(ctx context.Context) {
	reply, _, err := f.asker.FetchExplanation(ctx, managers.Question{Group: f.about.Group, Kind: f.about.Kind, Namespace: f.about.Namespace, Name: f.about.Name})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silence = err
	if err == nil {
		escapeAnswer(&reply.Answer)
		f.answer = &reply.Answer
	}
}

// takeSnapshot returns what is known now.
func (f *feed) takeSnapshot() (snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := snapshot{about: f.about, kind: f.kind, answer: f.answer, silence: f.silence}
	var blind []error
	for what, err := range f.blind {
		informer := map[string]cache.SharedIndexInformer{"the " + f.kind.Kind: f.objects, "its pods": f.pods, "its events": f.events}[what]
		if !informer.HasSynced() { // a watch that worked before is retried, and usually works again
			blind = append(blind, err)
		}
	}
	s.blind = errors.Join(blind...)
	for _, u := range listObjects[*unstructured.Unstructured](f.objects) {
		object, err := f.kind.Read(u)
		if err != nil {
			return snapshot{}, err
		}
		f.last = object
	}
	s.state = ptr.To(f.kind.View(f.last))
	escapeTexts(&s.state.Strategy, &s.state.Deadline)
	s.gone = f.objects.HasSynced() && len(f.objects.GetStore().List()) == 0
	s.revisions = revisionsOf(listObjects[*corev1.Pod](f.pods), f.last.GetUID(), s.state.UpdateRevision)
	s.events = eventsOf(listObjects[*corev1.Event](f.events), f.kind.Group)
	return s, nil
}

func listObjects[T any](i cache.SharedIndexInformer) []T {
	var out []T
	for _, o := range i.GetStore().List() {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}
