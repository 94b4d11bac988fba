// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// compileLimit is how long the compilation of the policies of a namespace, or of the platform, may take. OPA cannot stop a compilation:
// beyond the limit the policies count as not compiling, until they are compiled after all.
const compileLimit = time.Minute

// mostOwnSlow bounds how many compilations of bundles of one namespace continue beyond the limit while the bundles of the platform
// change, and how many of one new bundle of the platform while others change.
const mostOwnSlow = 2

// keptLate is how long bundles of the platform that were compiled beyond the limit are kept for a later activation. mostKeptLate is how many
// are kept that none of the last requested sets needs. A requested set keeps all compiled bundles that it needs, such as those of the
// platform and those with canaries: each activation stops at the first missing one, and would lose the others. mostAsked is how many sets
// count as last requested.
const (
	keptLate     = 10 * time.Minute
	mostKeptLate = 4
	mostAsked    = 4
)

// SlowError refuses policies that are not compiled within a time.
type SlowError struct{ Within time.Duration }

func (err SlowError) Error() string {
	return fmt.Sprintf("compiling them did not end within %s; what takes long is comprehensions in each other, keys of objects in each other, "+
		"and comparing values that are made of one another: write these in other ways", err.Within)
}

// isPassing reports whether a later compilation may succeed after this error. A panic does not show that the bundles are
// invalid.
func isPassing(err error) bool {
	return errors.As(err, new(SlowError)) || errors.As(err, new(*recovery.Panic)) || errors.Is(err, module.ErrBusy) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// platformBuild is a compilation of bundles of the platform, for all callers that wait for it.
type platformBuild struct {
	began time.Time
	done  chan struct{}
	// added are the bundles that no active policies have, as name@revision.
	added []string
	// left is true if a caller has stopped waiting; ended is true if the compilation has ended.
	left, ended bool
	// usedAt is when the compilation ended, or when a set that needs it was last requested.
	usedAt time.Time
	view   *compiledView
	err    error
}

// askedSet is a set that is not compiled yet, with the contents of the platform that it needs.
type askedSet struct {
	revision string
	needs    []string
}

// noteNeeds notes which contents of the platform a set needs, until it is compiled or other sets are requested.
func (c *views) noteNeeds(revision string, needs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = slices.Insert(c.dropAsked(revision), 0, askedSet{revision, needs})
	c.asked = c.asked[:min(len(c.asked), mostAsked)]
	for _, content := range needs {
		if b := c.platforms[content]; b != nil {
			b.usedAt = time.Now()
		}
	}
	c.forgetUnneeded()
}

// forgetNeeds notes that a set is compiled. Sets that were requested before it will not be activated any more.
func (c *views) forgetNeeds(revision string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.asked, func(one askedSet) bool { return one.revision == revision }); i >= 0 {
		c.asked = slices.Delete(c.asked, i, len(c.asked)) // the latest set comes first
	}
	c.forgetUnneeded()
}

// dropAsked returns the last requested sets without one.
func (c *views) dropAsked(revision string) []askedSet {
	return slices.DeleteFunc(c.asked, func(one askedSet) bool { return one.revision == revision })
}

// buildPlatform compiles bundles of the platform once for all callers that wait within the limit. A compilation that takes longer
// continues, and a later call gets its result; until then a call is refused at once. added are the bundles that are not active
// yet: while the others change, only mostOwnSlow compilations with them continue.
func (c *views) buildPlatform(ctx context.Context, content string, added []string, build func() (*compiledView, error)) (*compiledView, error) {
	limit := c.maxTime()
	c.mu.Lock()
	b := c.platforms[content]
	switch {
	case b == nil && c.countSlowPlatforms(added, limit) >= mostOwnSlow:
		c.mu.Unlock()
		return nil, SlowError{limit}
	case b == nil:
		b = &platformBuild{began: time.Now(), done: make(chan struct{}), added: added}
		c.platforms[content] = b
		recovery.Go("engine", func() {
			var v *compiledView
			err := recovery.Call("engine", func() (err error) {
				v, err = build()
				return err
			})
			c.finishPlatform(content, b, v, err)
		}, nil)
	}
	c.mu.Unlock()
	late := time.NewTimer(limit - time.Since(b.began))
	defer late.Stop()
	var err error = SlowError{limit}
	select {
	case <-b.done:
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
	b.left = true
	return nil, err
}

// countSlowPlatforms counts the compilations beyond the limit whose new bundles are all among the given ones.
func (c *views) countSlowPlatforms(added []string, limit time.Duration) (slow int) {
	for _, b := range c.platforms {
		if !b.ended && len(b.added) > 0 && time.Since(b.began) >= limit &&
			!slices.ContainsFunc(b.added, func(id string) bool { return !slices.Contains(added, id) }) {
			slow++
		}
	}
	return slow
}

// finishPlatform records the result of a compilation of bundles of the platform. If a caller has stopped waiting, the result is kept for a
// while, unless it is a passing error.
func (c *views) finishPlatform(content string, b *platformBuild, v *compiledView, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.ended, b.usedAt, b.view, b.err = true, time.Now(), v, err
	close(b.done)
	if !b.left || isPassing(err) {
		delete(c.platforms, content)
	} else {
		c.forgetUnneeded()
		c.scheduleExpiry(content, b, keptLate)
	}
	if b.left {
		c.reportCompiledLate()
	}
}

// scheduleExpiry drops a result of a compilation beyond the limit after a time, unless it is still needed.
func (c *views) scheduleExpiry(content string, b *platformBuild, after time.Duration) {
	time.AfterFunc(after, func() {
		_ = recovery.Call("engine", func() error { // it reports what it recovers
			if rest := c.findTimeToKeep(content, b); rest > 0 {
				c.scheduleExpiry(content, b, rest)
			} else {
				c.forgetPlatform(content, b)
			}
			return nil
		})
	})
}

// findTimeToKeep returns how long a result of a compilation beyond the limit is kept: it stays while another part of a set that needs it
// is being compiled.
func (c *views) findTimeToKeep(content string, b *platformBuild) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.platforms[content] != b {
		return 0
	}
	for _, one := range c.asked {
		if slices.Contains(one.needs, content) && slices.ContainsFunc(one.needs, c.isCompiling) {
			return keptLate
		}
	}
	return keptLate - time.Since(b.usedAt)
}

// isCompiling reports whether a content of the platform is being compiled.
func (c *views) isCompiling(content string) bool {
	b := c.platforms[content]
	return b != nil && !b.ended
}

// forgetUnneeded drops the oldest results if more than mostKeptLate are kept that none of the last requested sets needs.
func (c *views) forgetUnneeded() {
	var kept []string
	for content, b := range c.platforms {
		if b.ended && !slices.ContainsFunc(c.asked, func(one askedSet) bool { return slices.Contains(one.needs, content) }) {
			kept = append(kept, content)
		}
	}
	slices.SortFunc(kept, func(a, b string) int { return c.platforms[b].usedAt.Compare(c.platforms[a].usedAt) })
	for _, content := range kept[min(len(kept), mostKeptLate):] {
		delete(c.platforms, content)
	}
}

// forgetPlatform drops a result of a compilation beyond the limit.
func (c *views) forgetPlatform(content string, b *platformBuild) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.platforms[content] == b {
		delete(c.platforms, content)
	}
}

// findAdded returns the bundles of a set that none of the given snapshots has.
func findAdded(set bundle.Set, from []*Snapshot) []string {
	known := map[string]bool{}
	for _, other := range from {
		if other != nil {
			for _, id := range other.set.IDs() {
				known[id] = true
			}
		}
	}
	return slices.DeleteFunc(set.IDs(), func(id string) bool { return known[id] })
}
