// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// DefaultViewBytes bounds the compiled policies of namespaces that an engine keeps, in bytes. Policies beyond it are
// compiled again when a decision needs them.
const DefaultViewBytes = 32 << 20

// compiledBytes is how many bytes of the heap a byte of a module of the platform takes once it is compiled. With the
// built-in policies a view takes 0.66 MiB for a bundle that extends rollout, 0.73 MiB for one of protection and 2.2 MiB
// for one that extends all domains, 22 to 25 times the sources that are compiled with it. A bundle of a namespace adds
// no more to its view than its own size, which Bundle.HeapBytes estimates.
const compiledBytes = 26

// buildWait is how long a decision waits until the policies of its namespace are compiled, unless its own budget is
// longer. The compilation of bundles of usual size takes 20 to 80 ms of processor time, and the chart's limit allows a
// fifth of a processor.
const buildWait = time.Second

// asideWait is the same for decisions that no caller acts on.
const asideWait = 30 * time.Second

// views keeps compiled policies of namespaces, those that were used last.
type views struct {
	most   int
	points []decision.Name
	// lane serializes the compilation of scopes, including data and queries: many at once would take too much
	// memory.
	lane *module.Lane
	// waiting counts decisions that wait for the compilation of their policies. Background checks give them
	// precedence for a while.
	waiting atomic.Int64
	// limit is compileLimit, except in tests.
	limit atomic.Int64
	// tell is called with the error of a scope that a decision needs and that does not compile. It must not block.
	tell func(s *scope, err error)
	// compiledLate is called when bundles that were refused are compiled, or no longer prevent others from being compiled. It may
	// block.
	compiledLate func()

	mu    sync.Mutex
	held  int
	order *list.List // of *view, the last used first
	of    map[string]*list.Element
	// building has, by revision, the scopes that are being compiled.
	building map[string]*building
	// slowOf counts, by namespace, the compilations beyond the limit.
	slowOf map[string]int
	// platforms has, by content, the running compilations of the platform, and the latest results of those beyond the
	// limit.
	platforms map[string]*platformBuild
	// asked has the last requested sets that are not compiled, the latest first.
	asked []askedSet
}

func newViews(most int, points []decision.Name) *views {
	c := &views{most: most, points: points, tell: func(*scope, error) {}, compiledLate: func() {}, lane: module.NewLane(),
		order: list.New(), of: map[string]*list.Element{}, building: map[string]*building{}, slowOf: map[string]int{}, platforms: map[string]*platformBuild{}}
	c.limit.Store(int64(compileLimit))
	return c
}

// findView returns the cached view of a revision.
func (c *views) findView(revision string) *compiledView {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of[revision]
	if at == nil {
		return nil
	}
	c.order.MoveToFront(at)
	return at.Value.(*compiledView)
}

// cacheView caches a view, and drops those that were not used for the longest time. The view of a background check is not
// cached if others would be dropped for it.
func (c *views) cacheView(v *compiledView, check bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[v.revision] != nil || check && c.held+v.bytes > c.most {
		return
	}
	c.of[v.revision] = c.order.PushFront(v)
	for c.held += v.bytes; c.held > c.most; {
		last := c.order.Back()
		old := c.order.Remove(last).(*compiledView)
		delete(c.of, old.revision)
		c.held -= old.bytes
	}
}

// building is a scope that is being compiled.
type building struct {
	done chan struct{}
	// scopes are the scopes with this revision that wait for it, and whether a decision needs each. Different snapshots may have
	// different scopes.
	scopes map[*scope]bool
	// slow is the error of a compilation beyond the limit; nil before.
	slow error
	view *compiledView
	err  error
}

// ensureBuild compiles a scope once for all callers that ask at the same time, and one scope after the other. It calls spent with the time of
// the compilation.
func (c *views) ensureBuild(s *scope, check bool, spent func(time.Duration)) *building {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.building[s.revision]
	if b == nil {
		b = &building{done: make(chan struct{}), scopes: map[*scope]bool{}}
		c.building[s.revision] = b
		recovery.Go("engine", func() {
			var v *compiledView
			err := recovery.Call("engine", func() (err error) {
				v, err = c.compileScope(b, s, check, spent)
				return err
			})
			c.finishBuild(b, s, v, err)
		}, nil)
	}
	if b.slow != nil && check { // the scope is refused, and the caller does not wait
		return b
	}
	b.scopes[s] = b.scopes[s] || !check
	if b.slow != nil {
		c.noteOutcome(s, b.slow, true)
	}
	return b
}

// compileScope compiles a scope in its turn.
func (c *views) compileScope(b *building, s *scope, check bool, spent func(time.Duration)) (*compiledView, error) {
	if c.isSlow(s.tenant) {
		return nil, UnfitError{s.tenant, fmt.Errorf("other policies of it are being compiled, and that does not end; %w", SlowError{c.maxTime()})}
	}
	release, err := c.lane.AcquireTurn(context.Background())
	if err != nil {
		return nil, err
	}
	defer release()
	if v := c.findView(s.revision); v != nil {
		return v, nil
	}
	if err := s.compileFailure(); err != nil {
		return nil, err
	}
	limit := c.maxTime()
	late := time.AfterFunc(limit, func() {
		_ = recovery.Call("engine", func() error { // it reports what it recovers
			c.refuseSlow(b, s, SlowError{limit})
			return nil
		})
	})
	defer late.Stop()
	start := time.Now()
	v, err := s.buildView(context.Background(), c.points, c.most)
	if spent != nil {
		spent(time.Since(start))
	}
	if err != nil {
		return nil, err
	}
	c.cacheView(v, check && c.whySlow(b) == nil) // a slow compilation is not repeated
	return v, nil
}

// refuseSlow notes that a scope is not compiled within the limit.
func (c *views) refuseSlow(b *building, s *scope, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.building[s.revision] != b {
		return // the compilation has ended
	}
	b.slow = err
	c.slowOf[s.tenant]++
	for of, decides := range b.scopes {
		c.noteOutcome(of, err, decides)
	}
}

// noteOutcome records whether a scope compiles, and reports an error if a decision needs the scope.
func (c *views) noteOutcome(s *scope, err error, decides bool) {
	s.recordOutcome(err)
	if failed := s.compileFailure(); failed != nil && decides {
		c.tell(s, failed)
	}
}

// whySlow returns the error of a compilation beyond the limit; nil if it is within the limit.
func (c *views) whySlow(b *building) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.slow
}

// finishBuild records the result of a compilation. A compilation that had no turn does not count as an error of the bundles,
// and a later decision compiles the scope again.
func (c *views) finishBuild(b *building, s *scope, v *compiledView, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.building, s.revision)
	b.view, b.err = v, err
	switch {
	case errors.Is(err, module.ErrBusy):
		b.err = fmt.Errorf("the policies of namespace %s: %w: %w", s.tenant, errNotCompiled, err)
		for of := range b.scopes {
			of.forgetFailure()
		}
	case errors.As(err, new(UnfitError)): // it was not compiled, and must not be for now
	default:
		for of, decides := range b.scopes {
			c.noteOutcome(of, err, decides)
		}
		if err != nil {
			b.err = UnfitError{Namespace: s.tenant, Err: err}
		}
	}
	close(b.done)
	if b.slow == nil {
		return
	}
	if c.slowOf[s.tenant]--; c.slowOf[s.tenant] <= 0 {
		delete(c.slowOf, s.tenant)
	}
	c.reportCompiledLate()
}

// reportCompiledLate calls compiledLate in a separate goroutine, since it may activate bundles, which waits for
// compilations.
func (c *views) reportCompiledLate() { recovery.Go("engine", c.compiledLate, nil) }

// maxTime is how long it may take to compile a scope.
func (c *views) maxTime() time.Duration { return time.Duration(c.limit.Load()) }

// isSlow reports whether a namespace has too many compilations beyond the limit for another one.
func (c *views) isSlow(tenant string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slowOf[tenant] >= mostOwnSlow
}

// checkScope compiles a scope unless it is known to compile, and returns why it does not.
func (c *views) checkScope(ctx context.Context, s *scope) error {
	if err := s.compileFailure(); err != nil || s.checked.Load() { // in this order, since compileFailure may drop an old result
		return err
	}
	look := time.NewTicker(max(c.maxTime()/4, time.Millisecond))
	defer look.Stop()
	b := c.ensureBuild(s, true, nil)
	for {
		select {
		case <-b.done:
			return b.err
		default:
		}
		if err := c.whySlow(b); err != nil {
			return UnfitError{Namespace: s.tenant, Err: err}
		}
		select {
		case <-b.done:
			return b.err
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// errNotCompiled is the error of a decision whose policies are not compiled yet.
var errNotCompiled = errors.New("they are not compiled yet")

// viewFor returns the compiled policies of a namespace for a decision.
func (e *Engine) viewFor(ctx context.Context, s *scope, q *decisionRequest) (*compiledView, error) {
	if v := e.views.findView(s.revision); v != nil {
		return v, nil
	}
	if err := s.compileFailure(); err != nil {
		return nil, err
	}
	wait := max(q.budget, buildWait*e.patience)
	var spent func(time.Duration)
	if q.aside {
		wait = asideWait
	} else {
		mine := e.shares.shareForTenant(s.tenant)
		spent = func(took time.Duration) { mine.addSpentTime(e.clock(), took) }
	}
	return e.views.awaitView(ctx, s, wait, spent)
}

func (c *views) awaitView(ctx context.Context, s *scope, wait time.Duration, spent func(time.Duration)) (*compiledView, error) {
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	b := c.ensureBuild(s, false, spent)
	select {
	case <-b.done:
		return b.view, b.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the caller did not wait for the policies of namespace %s: %w: %w", s.tenant, errNotCompiled, context.Cause(ctx))
	case <-timer.C:
		return nil, fmt.Errorf("the policies of namespace %s: %w, after %s; a later decision finds them", s.tenant, errNotCompiled, wait)
	}
}

// outcomeWithoutView is the outcome of a decision without its policies.
func outcomeWithoutView(err error) decision.Outcome {
	if errors.Is(err, errNotCompiled) {
		return decision.TimedOut
	}
	return decision.Failed
}
