// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// window is how far back the time of a tenant's evaluations counts.
const window = 10 * time.Second

// tenantShare tracks how many workers and how much processor time the own bundles of one namespace
// use. Beyond the share their decisions are fallbacks, which are safe, and never those of the
// platform's policies alone: a tenant's denial must not end because it was evaluated too often.
type tenantShare struct {
	slots chan struct{} // one for each evaluation

	mu sync.Mutex
	// running has when each running evaluation began.
	running map[*evaluation]time.Time
	// spent has the time of ended evaluations, by the second in which they ended.
	spent [window / time.Second]struct {
		second int64
		time   time.Duration
	}
}

// beginEvaluation counts an evaluation from now on, whether it ends or not.
func (s *tenantShare) beginEvaluation(ev *evaluation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = map[*evaluation]time.Time{}
	}
	s.running[ev] = time.Now()
}

// endEvaluation counts an evaluation among those that ended.
func (s *tenantShare) endEvaluation(ev *evaluation, now time.Time) {
	s.mu.Lock()
	began := s.running[ev]
	delete(s.running, ev)
	s.mu.Unlock()
	s.addSpentTime(now, time.Since(began))
}

// addSpentTime counts the time of an ended evaluation.
func (s *tenantShare) addSpentTime(now time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	second := now.Unix()
	b := &s.spent[uint64(second)%uint64(len(s.spent))]
	if b.second != second {
		b.second, b.time = second, 0
	}
	b.time += took
}

// timeWithinWindow sums up the time of evaluations that ended within the window, and of running ones
// of a revision. Running evaluations of other revisions, which are not active any more, cannot be
// stopped. They keep their slots, but do not prevent corrected policies from deciding.
func (s *tenantShare) timeWithinWindow(now time.Time, revision string) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ev, began := range s.running {
		if ev.revision == revision {
			sum += min(time.Since(began), window)
		}
	}
	for _, b := range s.spent {
		if age := now.Unix() - b.second; age >= 0 && age < int64(len(s.spent)) {
			sum += b.time
		}
	}
	return sum
}

// tenantShares are the shares of all tenants.
type tenantShares struct {
	each int // how many workers one tenant may have
	// all has a slot for each evaluation of any tenant: a part of the workers is reserved for decisions
	// without bundles of tenants.
	all chan struct{}
	// judging has a slot for each evaluation that is repeated to find faulty bundles. An evaluation that
	// does not end releases its slot, unless there are mostEndless of them already.
	judging chan struct{}
	endless atomic.Int32

	mu sync.Mutex
	of map[string]*tenantShare
	// endlessOf counts the trials of each tenant that do not end.
	endlessOf map[string]int
}

// mostEndless is how many trials that do not end release their slots: enough to find one bundle among
// many thousands. They cannot be stopped, and use processors that all others need.
const mostEndless = 16

// mostOwnEndless is how many of these may be of one tenant. Beyond that no more bundles of the tenant can be judged, but those
// of others can.
const mostOwnEndless = mostEndless / 2

// mayTry reports whether a trial with the bundles of a tenant may be made.
func (s *tenantShares) mayTry(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tenant == "" || s.endlessOf[tenant] < mostOwnEndless
}

// countEndless counts a trial of a tenant.
func (s *tenantShares) countEndless(tenant string, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endlessOf[tenant] += more; s.endlessOf[tenant] == 0 {
		delete(s.endlessOf, tenant)
	}
}

// keepRunning makes a trial that does not end release its slot, so that other trials can run. The caller calls ended when the
// trial has ended.
func (s *tenantShares) keepRunning(ev *evaluation) (ended func()) {
	s.countEndless(ev.query.tenant, 1)
	if s.endless.Add(1) <= mostEndless {
		ev.releaseSlots()
	}
	return func() {
		s.endless.Add(-1)
		s.countEndless(ev.query.tenant, -1)
	}
}

func newShares(workers int) *tenantShares {
	quarter := max(workers/4, 1)
	return &tenantShares{
		each: quarter, all: make(chan struct{}, max(workers-quarter, 1)), judging: make(chan struct{}, quarter),
		of: map[string]*tenantShare{}, endlessOf: map[string]int{},
	}
}

// shareForTenant returns the share of a namespace; nil for "", which is no tenant.
func (s *tenantShares) shareForTenant(tenant string) *tenantShare {
	if tenant == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.of[tenant]
	if out == nil {
		out = &tenantShare{slots: make(chan struct{}, s.each)}
		s.of[tenant] = out
	}
	return out
}

// checkOverspent returns an error if a tenant has used up its time, including running evaluations of a
// revision.
func (e *Engine) checkOverspent(tenant, revision string, now time.Time) error {
	mine := e.shares.shareForTenant(tenant)
	if mine == nil {
		return nil
	}
	if spent := mine.timeWithinWindow(now, revision); spent > e.fair {
		return fmt.Errorf("the policies of namespace %s took %s of the processors within %s, and may take %s: their decisions wait until it is less",
			tenant, spent.Round(time.Millisecond), window, e.fair)
	}
	return nil
}
