// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// Snapshot is one revision of all policies. It is immutable, so decisions in progress when another
// snapshot becomes active end with the snapshot that they began with. The bundles of the platform are
// compiled; those of namespaces are compiled when they are needed.
type Snapshot struct {
	revision string
	set      bundle.Set
	missing  []Missing
	// spared is the same snapshot without withheld bundles; nil if there are none.
	spared  *sparedSnapshot
	cluster *scope
	// scopes has the scopes of the namespaces with bundles of their own or with canaries. Such a bundle is
	// in no other scope, so it cannot decide elsewhere.
	scopes map[string]*scope
	views  *views
}

// compileSnapshot makes a snapshot of the built-in bundle and a set of others. Parts that are the same
// in other snapshots are taken from there, so that a change in one namespace does not compile the
// others again.
//
// Bundles of the platform must compile, and so must bundles of a namespace that
// are in no other snapshot. Bundles of a namespace that were active with other bundles of the platform
// are checked with the new ones after activation.
func (e *Engine) compileSnapshot(ctx context.Context, set bundle.Set, from []*Snapshot) (*Snapshot, error) {
	if err := append(bundle.Set{e.builtin}, set...).CheckConflicts(); err != nil {
		return nil, err
	}
	if err := e.checkTenantBytes(set, from); err != nil {
		return nil, err
	}
	s := &Snapshot{revision: append(bundle.Set{e.builtin}, set...).Revision(), set: set, scopes: map[string]*scope{}, views: e.views}
	everywhere, parts := append(bundle.Set{e.builtin}, set.DecidingIn("")...), set.ByNamespace()
	e.views.noteNeeds(s.revision, e.findNeeds(everywhere, parts))
	err := e.compileParts(ctx, s, everywhere, parts, from)
	if !isPassing(err) { // the set is compiled, or is invalid
		e.views.forgetNeeds(s.revision)
	}
	if err != nil {
		return nil, err
	}
	if len(set.WithheldBundles()) > 0 {
		s.spared = &sparedSnapshot{compile: func() (*Snapshot, error) {
			return e.compileSnapshot(context.Background(), set.WithoutWithheld(), []*Snapshot{s})
		}}
	}
	return s, nil
}

// compileParts compiles the bundles that decide everywhere and those of the namespaces of a snapshot.
func (e *Engine) compileParts(ctx context.Context, s *Snapshot, everywhere bundle.Set, parts map[string]bundle.Part, from []*Snapshot) error {
	known := maps.Clone(e.compiled)
	for _, other := range from {
		maps.Copy(known, other.platformViews())
	}
	platform := func(part bundle.Set) (*compiledView, error) {
		content := part.ContentHash()
		if v, ok := known[content]; ok {
			return v, v.prepareQueries(ctx, e.points) // an engine with fewer points may have compiled it
		}
		v, err := e.views.buildPlatform(ctx, content, findAdded(part[1:], from), func() (*compiledView, error) { return newPreparedView(context.WithoutCancel(ctx), part, e.points) })
		if err != nil {
			return nil, err
		}
		known[content] = v
		return v, nil
	}
	cluster, err := platform(everywhere)
	if err != nil {
		return err
	}
	s.cluster = newScope(cluster, everywhere, nil)
	for ns, part := range parts {
		all := append(bundle.Set{e.builtin}, part.Platform...)
		v := cluster
		if part.Canaries {
			if v, err = platform(all); err != nil {
				return fmt.Errorf("compiling for namespace %s: %w", ns, err)
			}
		}
		if s.scopes[ns], err = e.scopeFor(ctx, v, all, part.Own, ns, from); err != nil {
			return fmt.Errorf("compiling for namespace %s: %w", ns, err)
		}
	}
	return nil
}

// findNeeds returns the contents of the platform that a set needs: that of all namespaces, and those with
// canaries.
func (e *Engine) findNeeds(everywhere bundle.Set, parts map[string]bundle.Part) []string {
	needs := []string{everywhere.ContentHash()}
	for _, part := range parts {
		if part.Canaries {
			needs = append(needs, append(bundle.Set{e.builtin}, part.Platform...).ContentHash())
		}
	}
	return needs
}

// sparedAgain is how soon a compilation is tried again whose error may pass.
const sparedAgain = time.Minute

// sparedSnapshot is compiled when it is needed, and again if it was not compiled in time or had no turn.
type sparedSnapshot struct {
	compile func() (*Snapshot, error)

	mu    sync.Mutex
	known bool
	out   *Snapshot
	again time.Time
	// compiling is closed when a compilation ends; nil while there is none.
	compiling chan struct{}
}

// findSnapshot returns the snapshot, nil if it does not compile, or if that is not known after the wait. It returns early if ctx ends.
func (p *sparedSnapshot) findSnapshot(ctx context.Context, now time.Time, wait time.Duration) *Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known || now.Before(p.again) {
		return p.out
	}
	ended := p.compiling
	if ended == nil {
		ended = make(chan struct{})
		p.compiling = ended
		recovery.Go("engine", func() { p.compileOnce(now) }, nil)
	}
	p.mu.Unlock()
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	return p.out
}

// compileOnce compiles the snapshot and records the result. A panic is an error that may pass.
func (p *sparedSnapshot) compileOnce(now time.Time) {
	var out *Snapshot
	known := false
	err := recovery.Call("engine", func() (err error) {
		out, err = p.compile()
		known = !isPassing(err)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.compiling)
	p.compiling = nil
	if p.known = known; err != nil {
		p.again = now.Add(sparedAgain)
		return
	}
	p.out = out
}

// withoutWithheld returns the snapshot for a decision: for a spared subject the one without withheld
// bundles. If the other bundles do not compile without these, it is the whole snapshot.
func (e *Engine) withoutWithheld(ctx context.Context, s *Snapshot, subject decision.Subject) *Snapshot {
	if s.spared == nil || !e.spares(subject) {
		return s
	}
	out := s.spared.findSnapshot(ctx, e.clock(), buildWait*e.patience)
	if out == nil {
		return s
	}
	of := *out
	of.missing = s.missing
	return &of
}

// scopeFor makes the scope of a namespace, or takes it from another snapshot. Own bundles that no
// other snapshot has must compile.
func (e *Engine) scopeFor(ctx context.Context, platform *compiledView, all, own bundle.Set, namespace string, from []*Snapshot) (*scope, error) {
	s := newScope(platform, append(all, own...), own)
	isNew := true
	for _, other := range from {
		if other == nil || other.scopes[namespace] == nil {
			continue
		}
		before := other.scopes[namespace]
		if before.revision == s.revision && before.platform == platform {
			return before, nil
		}
		// Bundles that were withheld meanwhile compile as before.
		isNew = isNew && !slices.Equal(before.own.IDs(), own.IDs())
	}
	if isNew {
		if err := e.views.checkScope(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// platformViews returns the platform's views of a snapshot, which may be nil, by their revisions.
func (s *Snapshot) platformViews() map[string]*compiledView {
	out := map[string]*compiledView{}
	if s != nil {
		out[s.cluster.platform.revision] = s.cluster.platform
		for _, in := range s.scopes {
			out[in.platform.revision] = in.platform
		}
	}
	return out
}

// scopeForSubject returns the scope that decides about a subject.
func (s *Snapshot) scopeForSubject(subject decision.Subject) *scope {
	if in, ok := s.scopes[subject.Namespace]; ok {
		return in
	}
	return s.cluster
}

// viewOf returns the compiled view that answers a point for a subject, for explanations.
func (s *Snapshot) viewOf(name decision.Name, subject decision.Subject) (*compiledView, error) {
	in := s.scopeForSubject(subject)
	if !in.takesPart(name) {
		return in.platform, nil
	}
	return s.ownView(in)
}

func (s *Snapshot) ownView(in *scope) (*compiledView, error) {
	if v := s.views.findView(in.revision); v != nil {
		return v, nil
	}
	if err := in.compileFailure(); err != nil {
		return nil, err
	}
	return s.views.awaitView(context.Background(), in, asideWait, nil)
}

// Revision names the snapshot.
func (s *Snapshot) Revision() string { return s.revision }

// RevisionFor is the revision of the bundles that decide about a subject. It does not change when only
// another namespace's bundles do, nor when a canary is promoted. Records have it.
func (s *Snapshot) RevisionFor(subject decision.Subject) string {
	return mixRevision(s.scopeForSubject(subject).revision, s.missingFor(subject))
}

// BundlesFor returns the bundles that decide about a subject, as name@revision, including the built-in
// policies. Records have them.
func (s *Snapshot) BundlesFor(subject decision.Subject) []string {
	return s.scopeForSubject(subject).bundles
}

// UserBundles returns the users' bundles in the snapshot.
func (s *Snapshot) UserBundles() bundle.Set { return s.set }

// IsPointDefined reports whether some policy answers the point for the subject. It is true if that is not known, and if a
// missing bundle might answer: then the caller gets a fallback.
func (s *Snapshot) IsPointDefined(name decision.Name, subject decision.Subject) bool {
	if _, missing := s.missingIn(name, subject); missing {
		return true
	}
	return s.scopeForSubject(subject).isPointDefined(name)
}

// IsPointExtended reports whether rules of users take part in the answers of a point to a
// subject. It is true if that is not known.
func (s *Snapshot) IsPointExtended(name decision.Name, subject decision.Subject) bool {
	if _, missing := s.missingIn(name, subject); missing {
		return true
	}
	return s.scopeForSubject(subject).isPointExtended(name)
}

// IsPointReplaced reports whether a bundle of users answers a point itself for a subject, in place of the built-in policies.
func (s *Snapshot) IsPointReplaced(name decision.Name, subject decision.Subject) bool {
	return s.scopeForSubject(subject).isPointReplaced(name)
}
