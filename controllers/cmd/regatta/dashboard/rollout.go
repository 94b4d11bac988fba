// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/rollout"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
)

const (
	// explainInterval is the least time between two questions to the managers about one workload.
	explainInterval = time.Second
	// explainEvery is the time after which the managers are asked again though nothing that is watched has changed: a hold
	// may end with the passing of time.
	explainEvery = 5 * time.Second
)

// rolloutKey names the workload of a page.
type rolloutKey struct{ resource, namespace, name string }

// rolloutSource keeps what the page of one workload shows: the object, its pods, its events and the answers of the managers.
// All pages of the workload share it, and it ends with the last of them.
type rolloutSource struct {
	key   rolloutKey
	kind  edit.Kind
	feed  *changeFeed
	asker asker
	// object, pods and events are watched; nodes are those of all pages, for the zones of pods.
	object, pods, events *watcher
	nodes                *watchGroup
	users                int
	stop                 context.CancelFunc

	mu    sync.Mutex
	reply *explain.Reply
	// silence is why the managers do not answer; nil if they do.
	silence error
}

// rolloutPage is a page of one workload.
type rolloutPage struct {
	source  *rolloutSource
	changed <-chan struct{}
	release func()
}

func (p *rolloutPage) collectRows() []row            { return p.source.collectRows() }
func (p *rolloutPage) changeSignal() <-chan struct{} { return p.changed }
func (p *rolloutPage) closePage()                    { p.release() }

// openWorkload opens the page of the workload that the address of a request names. It returns an error if there is none.
func (c *collector) openWorkload(ctx context.Context, r *http.Request) (page, error) {
	kind, err := findRolloutKind(r)
	if err != nil {
		return nil, err
	}
	key := rolloutKey{resourceName(kind), r.PathValue("namespace"), r.PathValue("name")}
	if kind.ClusterScoped != (key.namespace == "") {
		return nil, fmt.Errorf("the address of a %s has the wrong number of parts", kind.Kind)
	}
	object, err := c.access.Objects.Resource(kind.GroupVersionResource).Namespace(key.namespace).Get(r.Context(), key.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no %s %s", kind.Kind, key.name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kind.Describe(key.name), err)
	}
	state, err := rollout.ReadState(kind, object)
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(state.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector of %s: %w", kind.Describe(key.name), err)
	}
	return c.shareRollout(ctx, key, kind, selector), nil
}

// shareRollout opens a page of a workload, with the source that other pages of it have.
func (c *collector) shareRollout(ctx context.Context, key rolloutKey, kind edit.Kind, selector labels.Selector) page {
	nodes := c.startGroup(ctx, &c.nodes, func(feed *changeFeed) []*watcher { return []*watcher{c.newNodeWatcher(feed)} })
	c.mu.Lock()
	defer c.mu.Unlock()
	source, ok := c.rollouts[key]
	if !ok {
		source = c.newRolloutSource(key, kind, selector, nodes)
		watching, stop := context.WithCancel(ctx)
		source.stop, c.rollouts[key] = stop, source
		source.startWatches(watching)
	}
	source.users++
	p := &rolloutPage{source: source}
	changed, unsubscribe := source.feed.addListener()
	p.changed, p.release = changed, sync.OnceFunc(func() {
		unsubscribe()
		c.mu.Lock()
		defer c.mu.Unlock()
		if source.users--; source.users == 0 {
			source.stop()
			delete(c.rollouts, key)
		}
	})
	return p
}

func (c *collector) newRolloutSource(key rolloutKey, kind edit.Kind, selector labels.Selector, nodes *watchGroup) *rolloutSource {
	s := &rolloutSource{key: key, kind: kind, feed: &changeFeed{}, asker: c.asker, nodes: nodes}
	s.object = newObjectWatcher(c.access.Objects, "the "+kind.Kind, kind.GroupVersionResource, key.namespace, key.name, s.feed)
	pods, events := c.access.Core.CoreV1().Pods(key.namespace), c.access.Core.CoreV1().Events(key.namespace)
	s.pods = newWatcher("its pods", &corev1.Pod{}, target.NewListWatch("", selector, c.access.Core,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }, pods.Watch), s.feed, trimPod)
	involved := fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.kind", kind.Kind), fields.OneTermEqualSelector("involvedObject.name", key.name),
	).String()
	s.events = newWatcher("its events", &corev1.Event{}, target.NewListWatch(involved, labels.Everything(), c.access.Core,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return events.List(ctx, o) }, events.Watch), s.feed, trimManagedFields)
	return s
}

// newNodeWatcher watches the labels of nodes, which have the zones.
func (c *collector) newNodeWatcher(feed *changeFeed) *watcher {
	nodes := c.access.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	return newWatcher("nodes", &metav1.PartialObjectMetadata{}, target.NewListWatch("", labels.Everything(), c.access.Metadata,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) }, nodes.Watch), feed, trimNode)
}

// trimNode keeps the name and the zone of a node. The rest changes with each heartbeat.
func trimNode(object any) (any, error) {
	node, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	zone := node.Labels[corev1.LabelTopologyZone]
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: map[string]string{corev1.LabelTopologyZone: zone},
	}}, nil
}

// startWatches watches and asks until ctx is done.
func (s *rolloutSource) startWatches(ctx context.Context) {
	for _, w := range []*watcher{s.object, s.pods, s.events} {
		go w.runWatch(ctx)
	}
	go s.askManagers(ctx)
}

// askManagers asks why after each change, and from time to time.
func (s *rolloutSource) askManagers(ctx context.Context) {
	changed, unsubscribe := s.feed.addListener()
	defer unsubscribe()
	for {
		s.askOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(explainInterval):
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(explainEvery):
		}
	}
}

func (s *rolloutSource) askOnce(ctx context.Context) {
	q := newQuestion(s.kind.GroupKind(), s.key.namespace, s.key.name)
	q.Pods = true
	reply, _, err := s.asker.FetchExplanation(ctx, q)
	var undecided *managers.UndecidedError
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.reply, s.silence = &reply, nil
	case s.kind.IsNative(), errors.As(err, &undecided):
		s.silence = nil // policies decide nothing about it, or have not yet
	default:
		s.silence = err
	}
	s.feed.notifyListeners()
}

// lastAnswer returns the last answer of the managers, nil if there was none, and why there is no newer one.
func (s *rolloutSource) lastAnswer() (*explain.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reply, s.silence
}

// liveObject returns the object, nil if it was deleted or is not there yet.
func (s *rolloutSource) liveObject() *unstructured.Unstructured {
	for _, object := range listObjects[*unstructured.Unstructured](s.object) {
		return object
	}
	return nil
}

// trimPod keeps of a pod what the page shows.
func trimPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels,
			Annotations: keepAnnotations(p.Annotations), OwnerReferences: p.OwnerReferences,
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: p.Spec.NodeName},
		Status: corev1.PodStatus{Phase: p.Status.Phase, Conditions: p.Status.Conditions, ContainerStatuses: trimContainers(p.Status.ContainerStatuses)},
	}, nil
}

var _ cache.TransformFunc = trimPod
