// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/engine/decision"
)

// asker asks the managers.
type asker interface {
	FetchExplanation(ctx context.Context, q managers.Question) (explain.Reply, []error, error)
	FetchDecisions(ctx context.Context, d managers.Decisions) ([]decision.Record, []error, error)
}

// collector keeps what pages show. It begins to watch a resource when the first page needs it.
type collector struct {
	access    *target.Access
	asker     asker
	namespace string // "" for all
	now       func() time.Time

	mu        sync.Mutex
	workloads *watchGroup
	policies  *watchGroup
	budgets   *watchGroup
	nodes     *watchGroup
	decisions *decisionLog
	rollouts  map[rolloutKey]*rolloutSource
}

func newCollector(access *target.Access, namespace string) *collector {
	return &collector{access: access, asker: access.Asker, namespace: namespace, now: time.Now, rollouts: map[rolloutKey]*rolloutSource{}}
}

// watchGroup has the watchers of a page. They share a feed and run until the program ends.
type watchGroup struct {
	feed     *changeFeed
	watchers []*watcher
	cache    rowCache
}

// rowCache keeps the rows of objects, so that streams make a row only of an object that has changed.
type rowCache struct {
	mu   sync.Mutex
	rows map[*unstructured.Unstructured]row
}

// rowsOf returns the rows of all objects of a page.
func (c *rowCache) rowsOf(objects []*unstructured.Unstructured, newRow func(*unstructured.Unstructured) row) (out []row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[*unstructured.Unstructured]row, len(objects))
	for _, o := range objects {
		one, ok := c.rows[o]
		if !ok {
			one = newRow(o)
		}
		next[o] = one
		out = append(out, one)
	}
	c.rows = next
	return out
}

// startGroup returns the group at place, which it makes and starts if there is none yet.
func (c *collector) startGroup(ctx context.Context, place **watchGroup, open func(*changeFeed) []*watcher) *watchGroup {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *place == nil {
		feed := &changeFeed{}
		*place = &watchGroup{feed: feed, watchers: open(feed)}
		for _, w := range (*place).watchers {
			go w.runWatch(ctx)
		}
	}
	return *place
}

// watchedResource is a resource that a page shows.
type watchedResource struct {
	schema.GroupVersionResource
	clusterScoped bool
}

// openWatchers makes a watcher for each resource, limited to the namespace of the page.
func (c *collector) openWatchers(feed *changeFeed, resources ...watchedResource) (out []*watcher) {
	for _, r := range resources {
		namespace := c.namespace
		if r.clusterScoped {
			namespace = ""
		}
		out = append(out, newObjectWatcher(c.access.Objects, r.GroupVersionResource, namespace, "", feed))
	}
	return out
}

// describeGroup returns a row that says whether all objects of the watchers are there, and one for each that cannot be watched.
func describeGroup(watchers []*watcher) (out []row) {
	synced := true
	for _, w := range watchers {
		if err := w.findProblem(); err != nil {
			out = append(out, newProblemRow(w.what, err))
		} else {
			synced = synced && w.informer.HasSynced()
		}
	}
	return append(out, row{"sync", syncRow{"sync", synced}})
}

// syncRow says whether the rows of a page are complete.
type syncRow struct {
	Type   string `json:"type"`
	Synced bool   `json:"synced"`
}

// problemRow says what the page cannot show.
type problemRow struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func newProblemRow(what string, err error) row {
	return row{"problem/" + what, problemRow{"problem", edit.EscapeText(strings.Join(strings.Fields(err.Error()), " "))}}
}

// groupPage is a page whose rows come from the watchers of a group.
type groupPage struct {
	group       *watchGroup
	rows        func(*watchGroup) []row
	changed     <-chan struct{}
	unsubscribe func()
}

func newGroupPage(g *watchGroup, rows func(*watchGroup) []row) *groupPage {
	p := &groupPage{group: g, rows: rows}
	p.changed, p.unsubscribe = g.feed.addListener()
	return p
}

func (p *groupPage) collectRows() []row {
	return append(describeGroup(p.group.watchers), p.rows(p.group)...)
}

func (p *groupPage) isStale() bool { return false }

func (p *groupPage) changeSignal() <-chan struct{} { return p.changed }

func (p *groupPage) closePage() { p.unsubscribe() }

// explainObject asks the managers why something was decided about an object, and what would change that.
func (c *collector) explainObject(ctx context.Context, group, kind, namespace, name string) (explain.Reply, error) {
	q := newQuestion(schema.GroupKind{Group: group, Kind: kind}, namespace, name)
	q.Nearest = true
	reply, _, err := c.asker.FetchExplanation(ctx, q)
	return reply, err
}

// newQuestion is the question about an object. Managers know pods and kinds of workloads by kind, and others by resource.
func newQuestion(kind schema.GroupKind, namespace, name string) managers.Question {
	q := managers.Question{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: name}
	if _, known := kinds.FindByGroupKind(kind); known || kind == (schema.GroupKind{Kind: target.Pod}) {
		return q
	}
	for _, k := range edit.SelectKinds(func(k edit.Kind) bool { return k.GroupKind() == kind }) {
		q.Group, q.Kind, q.Resource = "", "", k.GroupVersionResource.GroupResource().String()
	}
	return q
}
