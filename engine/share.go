// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync"
	"time"
)

// window is how far back the time of a tenant's evaluations counts.
const window = 10 * time.Second

// share is what the bundles of one namespace's own people take: workers at a
// time, and processors over time. Beyond it their decisions are the fallbacks,
// which are safe, and never those of the platform's policies alone: a tenant's
// denial must not end because it was asked too often.
type share struct {
	slots chan struct{} // one for each evaluation

	mu sync.Mutex
	// spent has the time of evaluations that ended, by the second they ended in.
	spent [window / time.Second]struct {
		second int64
		time   time.Duration
	}
}

// spend counts an evaluation that ended.
func (s *share) spend(now time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	second := now.Unix()
	b := &s.spent[uint64(second)%uint64(len(s.spent))]
	if b.second != second {
		b.second, b.time = second, 0
	}
	b.time += took
}

// within sums up what ended within the window.
func (s *share) within(now time.Time) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.spent {
		if age := now.Unix() - b.second; age >= 0 && age < int64(len(s.spent)) {
			sum += b.time
		}
	}
	return sum
}

// shares are those of all tenants.
type shares struct {
	each int // workers that one may have
	// all has a slot for each evaluation of any of them: a part of the workers is
	// for decisions that tenants have no part in.
	all chan struct{}

	mu sync.Mutex
	of map[string]*share
}

func newShares(workers int) *shares {
	quarter := max(workers/4, 1)
	return &shares{each: quarter, all: make(chan struct{}, max(workers-quarter, 1)), of: map[string]*share{}}
}

// share is that of a namespace; nil of "", which is no tenant.
func (s *shares) share(tenant string) *share {
	if tenant == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.of[tenant]
	if out == nil {
		out = &share{slots: make(chan struct{}, s.each)}
		s.of[tenant] = out
	}
	return out
}

// overspent is an error if a tenant has had its time.
func (e *Engine) overspent(tenant string, now time.Time) error {
	mine := e.shares.share(tenant)
	if mine == nil {
		return nil
	}
	if spent := mine.within(now); spent > e.fair {
		return fmt.Errorf("the policies of namespace %s took %s of the processors within %s, and may take %s: their decisions wait until it is less",
			tenant, spent.Round(time.Millisecond), window, e.fair)
	}
	return nil
}
