// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

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

// compileLimit is how long it may take to compile the policies of a namespace, or those of the platform. OPA cannot stop it: beyond the
// limit they count as policies that do not compile, until they are compiled after all.
const compileLimit = time.Minute

// mostOwnSlow bounds how many compilations of bundles of one namespace go on beyond the limit, as the bundles of the platform change.
const mostOwnSlow = 2

// SlowError refuses policies that are not compiled within a time.
type SlowError struct{ Within time.Duration }

func (err SlowError) Error() string {
	return fmt.Sprintf("compiling them did not end within %s; what takes long is comprehensions in each other, keys of objects in each other, "+
		"and comparing values that are made of one another: write these in other ways", err.Within)
}

// views keeps compiled policies of namespaces, those that were used last.
type views struct {
	most   int
	points []decision.Name
	builds singleflight.Group
	// lane has scopes compiled one after the other, data and queries included: many at once would add up in memory.
	lane *module.Lane
	// waiting counts decisions whose policies are to be compiled. Checks let them go first, for a while.
	waiting atomic.Int64
	// limit is compileLimit, but for tests.
	limit atomic.Int64
	// tell is called with why a scope does not compile that a decision needs. It must not block.
	tell func(s *scope, err error)
	// compiledLate is called when bundles of the platform are compiled after all that were not within the limit.
	compiledLate func()

	mu    sync.Mutex
	held  int
	order *list.List // of *view, those used last first
	of    map[string]*list.Element
	// slowOf counts, by namespace, what is being compiled beyond the limit.
	slowOf map[string]int
	// slow has, by content, what of the platform is being compiled beyond the limit, and the last that was after all.
	slow map[string]*slowBuild
}

func newViews(most int, points []decision.Name) *views {
	c := &views{most: most, points: points, tell: func(*scope, error) {}, compiledLate: func() {}, lane: module.NewLane(),
		order: list.New(), of: map[string]*list.Element{}, slowOf: map[string]int{}, slow: map[string]*slowBuild{}}
	c.limit.Store(int64(compileLimit))
	return c
}

// find returns what is kept of a revision.
func (c *views) find(revision string) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.of[revision]
	if at == nil {
		return nil
	}
	c.order.MoveToFront(at)
	return at.Value.(*view)
}

// keep keeps a view, and forgets those not used for longest. One that would push others out for a check is not kept.
func (c *views) keep(v *view, check bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[v.revision] != nil || check && c.held+v.bytes > c.most {
		return
	}
	c.of[v.revision] = c.order.PushFront(v)
	for c.held += v.bytes; c.held > c.most; {
		last := c.order.Back()
		old := c.order.Remove(last).(*view)
		delete(c.of, old.revision)
		c.held -= old.bytes
	}
}

// build compiles a scope once for all callers that ask at the same time, and one scope after the other. It calls spent with the time that it took.
func (c *views) build(s *scope, check bool, spent func(time.Duration)) <-chan singleflight.Result {
	return c.builds.DoChan(s.revision, func() (any, error) {
		if c.isSlow(s.tenant) {
			return nil, UnfitError{s.tenant, fmt.Errorf("other policies of it are being compiled, and that does not end; %w", SlowError{c.maxTime()})}
		}
		release, err := c.lane.AcquireTurn(context.Background())
		if err != nil {
			return nil, fmt.Errorf("the policies of namespace %s: %w: %w", s.tenant, errNotCompiled, err)
		}
		defer release()
		if v := c.find(s.revision); v != nil {
			s.note(nil)
			return v, nil
		}
		if err := s.failed(); err != nil {
			return nil, err
		}
		start := time.Now()
		v, err := c.compile(s, check, func() (*view, error) { return s.build(context.Background(), c.points, c.most) })
		if spent != nil {
			spent(time.Since(start))
		}
		if err != nil {
			return nil, s.failed()
		}
		c.keep(v, check)
		return v, nil
	})
}

// maxTime is how long it may take to compile a scope.
func (c *views) maxTime() time.Duration { return time.Duration(c.limit.Load()) }

// compile notes what becomes of a scope: also that it is not compiled within the limit, until it is after all.
func (c *views) compile(s *scope, check bool, build func() (*view, error)) (v *view, err error) {
	var mu sync.Mutex
	ended, slow, limit := false, false, c.maxTime()
	note := func(last bool, err error) {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		if ended = last; last {
			if slow {
				c.countSlow(s.tenant, -1)
			}
		} else {
			slow = true
			c.countSlow(s.tenant, 1)
		}
		s.note(err)
		if failed := s.failed(); failed != nil && !check {
			c.tell(s, failed)
		}
	}
	late := time.AfterFunc(limit, func() {
		_ = recovery.Call("engine", func() error { // it reports what it recovers
			note(false, SlowError{limit})
			return nil
		})
	})
	defer late.Stop()
	err = recovery.Call("engine", func() (err error) {
		v, err = build()
		return err
	})
	note(true, err)
	return v, err
}

func (c *views) countSlow(tenant string, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slowOf[tenant] += by; c.slowOf[tenant] <= 0 {
		delete(c.slowOf, tenant)
	}
}

func (c *views) isSlow(tenant string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slowOf[tenant] >= mostOwnSlow
}

// check compiles a scope unless it is known to compile, and returns why it does not.
func (c *views) check(ctx context.Context, s *scope) error {
	if s.checked.Load() {
		return s.failed()
	}
	look := time.NewTicker(max(c.maxTime()/4, time.Millisecond))
	defer look.Stop()
	built := c.build(s, true, nil)
	for {
		select {
		case r := <-built:
			return r.Err
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			if err := s.failed(); err != nil { // it is not compiled within the limit
				return err
			}
		}
	}
}

// slowBuild is bundles of the platform that are being compiled.
type slowBuild struct {
	ended bool
	view  *view
	err   error
}

// buildPlatform compiles bundles of the platform for a caller that waits within the limit. What takes longer goes on, and a
// later call has what comes of it; until then it is refused at once.
func (c *views) buildPlatform(ctx context.Context, content string, build func() (*view, error)) (*view, error) {
	limit := c.maxTime()
	c.mu.Lock()
	before := c.slow[content]
	if before != nil && before.ended {
		delete(c.slow, content)
	}
	c.mu.Unlock()
	switch {
	case before != nil && before.ended:
		return before.view, before.err
	case before != nil:
		return nil, SlowError{limit}
	}
	b, done := &slowBuild{}, make(chan struct{})
	recovery.Go("engine", func() {
		defer close(done)
		var v *view
		err := recovery.Call("engine", func() (err error) {
			v, err = build()
			return err
		})
		c.end(content, b, v, err)
	}, nil)
	late := time.NewTimer(limit)
	defer late.Stop()
	var err error = SlowError{limit}
	select {
	case <-done:
		return b.view, b.err
	case <-late.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.ended { // a moment ago
		return b.view, b.err
	}
	c.slow[content] = b
	return nil, err
}

// end notes what came of bundles of the platform. Of those that took longer than the limit the last is kept.
func (c *views) end(content string, b *slowBuild, v *view, err error) {
	c.mu.Lock()
	b.ended, b.view, b.err = true, v, err
	late := c.slow[content] == b
	if late {
		maps.DeleteFunc(c.slow, func(_ string, other *slowBuild) bool { return other.ended && other != b })
	}
	c.mu.Unlock()
	if late {
		c.compiledLate()
	}
}

// errNotCompiled is of a decision that came before its policies were compiled.
var errNotCompiled = errors.New("they are not compiled yet")

// viewFor returns the policies of a namespace, compiled, for a question about it.
func (e *Engine) viewFor(ctx context.Context, s *scope, q *question) (*view, error) {
	if v := e.views.find(s.revision); v != nil {
		return v, nil
	}
	if err := s.failed(); err != nil {
		return nil, err
	}
	wait := max(q.budget, buildWait*e.patience)
	var spent func(time.Duration)
	if q.aside {
		wait = asideWait
	} else {
		mine := e.shares.share(s.tenant)
		spent = func(took time.Duration) { mine.spend(e.clock(), took) }
	}
	return e.views.await(ctx, s, wait, spent)
}

func (c *views) await(ctx context.Context, s *scope, wait time.Duration, spent func(time.Duration)) (*view, error) {
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case r := <-c.build(s, false, spent):
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*view), nil
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
