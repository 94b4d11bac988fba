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

// DefaultViewBytes bounds the compiled policies of namespaces that an engine keeps, in bytes. They are compiled again
// when a decision needs them.
const DefaultViewBytes = 32 << 20

// compiledBytes is how many bytes of the heap a byte of a module of the platform takes once it is compiled. With the
// built-in policies a view takes 0.66 MiB for a bundle that extends rollout, 0.73 MiB for one of protection and 2.2 MiB
// for one that extends all domains, 22 to 25 times the sources that are compiled with it. What a bundle of a namespace
// adds to its view is no more than what it takes itself, which Bundle.HeapBytes estimates.
const compiledBytes = 26

// buildWait is how long a decision waits until the policies of its namespace are compiled, where its own budget is
// not longer. For bundles of usual size it takes 20 to 80 ms of a processor, and the chart's limit allows a fifth of one.
const buildWait = time.Second

// asideWait is the same for decisions that no caller waits to act on.
const asideWait = 30 * time.Second

// views keeps compiled policies of namespaces, those that were used last.
type views struct {
	most   int
	points []decision.Name
	// lane has scopes compiled one after the other, data and queries included: many at once would add up in memory.
	lane *module.Lane
	// waiting counts decisions whose policies are to be compiled. Checks let them go first, for a while.
	waiting atomic.Int64
	// limit is compileLimit, but for tests.
	limit atomic.Int64
	// tell is called with why a scope does not compile that a decision needs. It must not block.
	tell func(s *scope, err error)
	// compiledLate is called when bundles that were refused are compiled, or no longer keep others from being compiled. It may block.
	compiledLate func()

	mu    sync.Mutex
	held  int
	order *list.List // of *view, those used last first
	of    map[string]*list.Element
	// building has, by revision, the scopes that are being compiled.
	building map[string]*building
	// slowOf counts, by namespace, what is being compiled beyond the limit.
	slowOf map[string]int
	// platforms has, by content, what of the platform is being compiled, and the last that was compiled beyond the limit.
	platforms map[string]*platformBuild
	// asked has the sets that were asked for last and are not compiled, the last one first.
	asked []askedSet
}

func newViews(most int, points []decision.Name) *views {
	c := &views{most: most, points: points, tell: func(*scope, error) {}, compiledLate: func() {}, lane: module.NewLane(),
		order: list.New(), of: map[string]*list.Element{}, building: map[string]*building{}, slowOf: map[string]int{}, platforms: map[string]*platformBuild{}}
	c.limit.Store(int64(compileLimit))
	return c
}

// findView returns what is kept of a revision.
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

// cacheView keeps a view, and forgets those not used for longest. One that would push others out for a check is not kept.
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
	// scopes are those with this revision that wait for it, and whether one is of a decision. Each snapshot may have another one.
	scopes map[*scope]bool
	// slow is why it is refused beyond the limit; nil before.
	slow error
	view *compiledView
	err  error
}

// ensureBuild compiles a scope once for all callers that ask at the same time, and one scope after the other. It calls spent with the time that it took.
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
	if b.slow != nil && check { // it is refused, and the caller does not wait
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
	c.cacheView(v, check && c.whySlow(b) == nil) // what took long is compiled no more than once
	return v, nil
}

// refuseSlow notes that a scope is not compiled within the limit.
func (c *views) refuseSlow(b *building, s *scope, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.building[s.revision] != b {
		return // it has ended
	}
	b.slow = err
	c.slowOf[s.tenant]++
	for of, decides := range b.scopes {
		c.noteOutcome(of, err, decides)
	}
}

// noteOutcome notes whether a scope compiles, and reports that it does not where a decision needs it.
func (c *views) noteOutcome(s *scope, err error, decides bool) {
	s.recordOutcome(err)
	if failed := s.compileFailure(); failed != nil && decides {
		c.tell(s, failed)
	}
}

// whySlow is why what is being compiled is refused since it takes long; nil if it is not.
func (c *views) whySlow(b *building) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.slow
}

// finishBuild notes what came of a scope. That it had no turn is no fault of its bundles, and a later decision has it compiled.
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
	case errors.As(err, new(UnfitError)): // it was not compiled, and is not to be for now
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

// reportCompiledLate reports it in a goroutine of its own: what puts bundles in waits for what it compiles.
func (c *views) reportCompiledLate() { recovery.Go("engine", c.compiledLate, nil) }

// maxTime is how long it may take to compile a scope.
func (c *views) maxTime() time.Duration { return time.Duration(c.limit.Load()) }

// isSlow reports whether so much of a namespace is being compiled beyond the limit that no more of it is.
func (c *views) isSlow(tenant string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slowOf[tenant] >= mostOwnSlow
}

// checkScope compiles a scope unless it is known to compile, and returns why it does not.
func (c *views) checkScope(ctx context.Context, s *scope) error {
	if err := s.compileFailure(); err != nil || s.checked.Load() { // in this order: it may find out that it is not known any longer
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

// errNotCompiled is of a decision that came before its policies were compiled.
var errNotCompiled = errors.New("they are not compiled yet")

// viewFor returns the policies of a namespace, compiled, for a question about it.
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

// outcomeWithoutView is what became of a decision without its policies.
func outcomeWithoutView(err error) decision.Outcome {
	if errors.Is(err, errNotCompiled) {
		return decision.TimedOut
	}
	return decision.Failed
}
