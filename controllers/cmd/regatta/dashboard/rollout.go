// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/rollout"
	"github.com/regatta-sh/regatta/controllers/explain"
)

const (
	// explainInterval is the least time between two questions to the managers about one workload.
	explainInterval = time.Second
	// explainEvery is the time after which the managers are asked again though nothing that is watched has changed: a hold
	// may end with the passing of time.
	explainEvery = 5 * time.Second
)

// rolloutKey names the workload of a page, and tells it from another one of the same name or with another selector.
type rolloutKey struct {
	resource, namespace, name, selector string
	uid                                 types.UID
}

// rolloutSource keeps what the page of one workload shows: the object, its pods, its events and the answers of the managers.
// All pages of the workload share it, and it ends with the last of them.
type rolloutSource struct {
	key   rolloutKey
	kind  edit.Kind
	asker asker
	// watched tells of changes of watched objects, and feed of these and of answers.
	watched, feed        *changeFeed
	object, pods, events *watcher
	// revisions have the hash of the newest revision where the workload does not; nil for kinds that have it.
	revisions *watcher
	// nodes are those of all pages, for the zones of pods.
	nodes *watcher
	users int
	stop  context.CancelFunc

	mu    sync.Mutex
	reply *explain.Reply
	// problems are why answers are missing or may be out of date.
	problems []error
}

// rolloutPage is a page of one workload.
type rolloutPage struct {
	source  *rolloutSource
	changed <-chan struct{}
	release func()
}

func (p *rolloutPage) collectRows() []row            { return p.source.collectRows() }
func (p *rolloutPage) isStale() bool                 { return p.source.isStale() }
func (p *rolloutPage) changeSignal() <-chan struct{} { return p.changed }
func (p *rolloutPage) closePage()                    { p.release() }

// openWorkload opens the page of the workload that the address of a request names. It returns a pageError if there is none.
func (c *collector) openWorkload(ctx context.Context, r *http.Request) (page, error) {
	kind, err := findRolloutKind(r)
	if err != nil {
		return nil, pageError{err}
	}
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	if kind.ClusterScoped != (namespace == "") {
		return nil, pageError{fmt.Errorf("the address of a %s has the wrong number of parts", kind.Kind)}
	}
	object, err := c.access.Objects.Resource(kind.GroupVersionResource).Namespace(namespace).Get(r.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, pageError{fmt.Errorf("there is no %s %s", kind.Kind, name)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kind.Describe(name), err)
	}
	selector, err := selectorOf(kind, object)
	if err != nil {
		return nil, pageError{fmt.Errorf("%s: %w", kind.Describe(name), err)}
	}
	key := rolloutKey{resourceName(kind), namespace, name, selector.String(), object.GetUID()}
	return c.shareRollout(ctx, key, kind, selector), nil
}

// selectorOf returns the selector of the pods of a workload. One that selects none or all of them is an error: the page would show
// pods of other workloads.
func selectorOf(kind edit.Kind, object *unstructured.Unstructured) (labels.Selector, error) {
	state, err := rollout.ReadState(kind, object)
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(state.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	if selector.String() == "" {
		return nil, errors.New("spec.selector is empty, so its pods cannot be shown")
	}
	return selector, nil
}

// shareRollout opens a page of a workload, with the source that other pages of it have.
func (c *collector) shareRollout(ctx context.Context, key rolloutKey, kind edit.Kind, selector labels.Selector) page {
	nodes := c.startGroup(ctx, &c.nodes, func(feed *changeFeed) []*watcher { return []*watcher{c.newNodeWatcher(feed)} })
	c.mu.Lock()
	defer c.mu.Unlock()
	source, ok := c.rollouts[key]
	if !ok {
		source = c.newRolloutSource(key, kind, selector)
		source.nodes = nodes.watchers[0]
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

func (c *collector) newRolloutSource(key rolloutKey, kind edit.Kind, selector labels.Selector) *rolloutSource {
	s := &rolloutSource{key: key, kind: kind, feed: &changeFeed{}, asker: c.asker}
	s.watched = &changeFeed{next: s.feed}
	s.object = newObjectWatcher(c.access.Objects, kind.GroupVersionResource, key.namespace, key.name, s.watched)
	namespace := key.namespace
	if kind.ClusterScoped {
		namespace = c.namespace
	}
	core := c.access.Core
	pods, events := core.CoreV1().Pods(namespace), core.CoreV1().Events(namespace)
	s.pods = newWatcher("pods", &corev1.Pod{}, watchSource{core, "", selector,
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }, pods.Watch}, s.watched, trimPod)
	involved := fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.kind", kind.Kind), fields.OneTermEqualSelector("involvedObject.name", key.name),
	).String()
	s.events = newWatcher("events", &corev1.Event{}, watchSource{core, involved, labels.Everything(),
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return events.List(ctx, o) }, events.Watch}, s.watched, trimManagedFields)
	s.revisions = newRevisionWatcher(core, kind, namespace, selector, s.watched)
	return s
}

// newNodeWatcher watches the labels of nodes, which have the zones.
func (c *collector) newNodeWatcher(feed *changeFeed) *watcher {
	nodes := c.access.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	return newWatcher("nodes", &metav1.PartialObjectMetadata{}, watchSource{c.access.Metadata, "", labels.Everything(),
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) }, nodes.Watch}, feed, trimNode)
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

// allWatchers are the watchers of the page, those of nodes too.
func (s *rolloutSource) allWatchers() []*watcher {
	out := []*watcher{s.object, s.pods, s.events, s.nodes}
	if s.revisions != nil {
		out = append(out, s.revisions)
	}
	return out
}

// startWatches watches and asks until ctx is done.
func (s *rolloutSource) startWatches(ctx context.Context) {
	for _, w := range s.allWatchers() {
		if w != s.nodes { // they are watched already
			go w.runWatch(ctx)
		}
	}
	go s.askManagers(ctx)
}

// askManagers asks why after each change of what is watched, and from time to time.
func (s *rolloutSource) askManagers(ctx context.Context) {
	changed, unsubscribe := s.watched.addListener()
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

// askOnce asks the managers about the workload. Policies decide nothing about kinds of Kubernetes.
func (s *rolloutSource) askOnce(ctx context.Context) {
	defer s.feed.notifyListeners()
	if s.kind.IsNative() {
		return
	}
	q := newQuestion(s.kind.GroupKind(), s.key.namespace, s.key.name)
	q.Pods = true
	reply, warnings, err := s.asker.FetchExplanation(ctx, q)
	var undecided *managers.UndecidedError
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = warnings
	switch {
	case err == nil:
		s.reply = &reply
	case errors.As(err, &undecided):
		s.reply = nil // what was decided before is not known any more
	default:
		s.problems = append(s.problems, err)
	}
}

// lastAnswer returns the last answer of the managers, nil if there is none, and why it is missing or may be out of date.
func (s *rolloutSource) lastAnswer() (*explain.Reply, []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reply, s.problems
}

// isStale is true if the name has another object now, or if the selector of the object has changed.
func (s *rolloutSource) isStale() bool {
	object := s.liveObject()
	if object == nil {
		return false
	}
	selector, err := selectorOf(s.kind, object)
	return object.GetUID() != s.key.uid || err != nil || selector.String() != s.key.selector
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
		Spec: corev1.PodSpec{NodeName: p.Spec.NodeName},
		Status: corev1.PodStatus{Phase: p.Status.Phase, Conditions: p.Status.Conditions,
			ContainerStatuses: trimContainers(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)),
		},
	}, nil
}
