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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/replicas"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
)

// poll is how often the manager is asked.
const poll = time.Second

// asker asks the manager why.
type asker interface {
	Ask(ctx context.Context, q replicas.Question) (explain.Reply, []error, error)
}

// feed watches a CloneSet, its pods and its events, and asks about it.
type feed struct {
	about  target.Target
	sets   cache.SharedIndexInformer
	pods   cache.SharedIndexInformer
	events cache.SharedIndexInformer
	asker  asker

	mu      sync.Mutex
	last    *kruise.CloneSet
	answer  *explain.Answer
	silence error
	blind   map[string]error
}

// newFeed reads the CloneSet once, so that a wrong name is told at once.
func newFeed(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface, a asker, about target.Target) (*feed, error) {
	sets := objects.Resource(kruise.GroupVersion.WithResource("clonesets")).Namespace(about.Namespace)
	object, err := sets.Get(ctx, about.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no CloneSet %s in namespace %s", about.Name, about.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading CloneSet: %w", err)
	}
	set, err := typed(object)
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	f := &feed{about: about, asker: a, last: set, blind: map[string]error{}}
	named := fields.OneTermEqualSelector("metadata.name", about.Name).String()
	involved := fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.kind", target.CloneSet), fields.OneTermEqualSelector("involvedObject.name", about.Name),
	).String()
	f.sets = f.informer("the CloneSet", &unstructured.Unstructured{}, listWatch(named, labels.Everything(), objects,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return sets.List(ctx, o) }, sets.Watch))
	pods, events := client.CoreV1().Pods(about.Namespace), client.CoreV1().Events(about.Namespace)
	f.pods = f.informer("its pods", &corev1.Pod{}, listWatch("", selector, client,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }, pods.Watch))
	f.events = f.informer("its events", &corev1.Event{}, listWatch(involved, labels.Everything(), client,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return events.List(ctx, o) }, events.Watch))
	return f, nil
}

func listWatch(field string, selector labels.Selector, client any,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error), follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) cache.ListerWatcher {
	limit := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector, o.LabelSelector = field, selector.String()
		return o
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, limit(o)) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return follow(ctx, limit(o)) },
	}, client)
}

// informer keeps objects in memory, without what nobody looks at. What cannot
// be watched is said in the view, which goes on without it.
func (f *feed) informer(what string, example runtime.Object, lw cache.ListerWatcher) cache.SharedIndexInformer {
	i := cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{})
	_ = i.SetTransform(slim) // neither fails before the informer runs
	_ = i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return // it lists again
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.blind[what] = fmt.Errorf("watching %s: %w", what, err)
	})
	return i
}

func slim(object any) (any, error) {
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

// run watches and asks until ctx is done.
func (f *feed) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, i := range []cache.SharedIndexInformer{f.sets, f.pods, f.events} {
		all.Go(func() { i.RunWithContext(ctx) })
	}
	all.Go(func() {
		ticker := time.NewTicker(poll)
		defer ticker.Stop()
		for {
			f.ask(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	all.Wait()
}

func (f *feed) ask(ctx context.Context) {
	reply, _, err := f.asker.Ask(ctx, replicas.Question{Kind: f.about.Kind, Namespace: f.about.Namespace, Name: f.about.Name})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silence = err
	if err == nil {
		f.answer = &reply.Answer
	}
}

// snapshot is what is known now.
func (f *feed) snapshot() (snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := snapshot{answer: f.answer, silence: f.silence}
	var blind []error
	for what, err := range f.blind {
		informer := map[string]cache.SharedIndexInformer{"the CloneSet": f.sets, "its pods": f.pods, "its events": f.events}[what]
		if !informer.HasSynced() { // a watch that worked is tried again, and mostly works
			blind = append(blind, err)
		}
	}
	s.blind = errors.Join(blind...)
	for _, o := range f.sets.GetStore().List() {
		set, err := typed(o)
		if err != nil {
			return snapshot{}, err
		}
		f.last = set
	}
	s.set = f.last
	s.gone = f.sets.HasSynced() && len(f.sets.GetStore().List()) == 0
	s.revisions = revisionsOf(listed[*corev1.Pod](f.pods), s.set.UID, s.set.Status.UpdateRevision)
	s.events = eventsOf(listed[*corev1.Event](f.events))
	return s, nil
}

func listed[T any](i cache.SharedIndexInformer) []T {
	var out []T
	for _, o := range i.GetStore().List() {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

func typed(object any) (*kruise.CloneSet, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("reading CloneSet: it is a %T", object)
	}
	set := &kruise.CloneSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, set); err != nil {
		return nil, fmt.Errorf("reading CloneSet: %w", err)
	}
	return set, nil
}
