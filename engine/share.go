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

// tenantShare is what the bundles of one namespace's own people take: workers at a
// time, and processors over time. Beyond it their decisions are the fallbacks,
// which are safe, and never those of the platform's policies alone: a tenant's
// denial must not end because it was asked too often.
type tenantShare struct {
	slots chan struct{} // one for each evaluation

	mu sync.Mutex
	// running has when the evaluations began that did not end yet.
	running map[*evaluation]time.Time
	// spent has the time of evaluations that ended, by the second they ended in.
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

// addSpentTime counts time that was taken and is over.
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

// timeWithinWindow sums up what ended within the window, and what runs now of the policies of a
// revision. What still runs of others, which decide no more, cannot be stopped; it has
// the slots that it took, and does not keep policies from deciding that were mended.
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

// tenantShares are those of all tenants.
type tenantShares struct {
	each int // workers that one may have
	// all has a slot for each evaluation of any of them: a part of the workers is
	// for decisions that tenants have no part in.
	all chan struct{}
	// judging has a slot for each evaluation that is made again to find out which
	// bundles are to blame. One that does not end gives it back, unless there are
	// mostEndless already.
	judging chan struct{}
	endless atomic.Int32

	mu sync.Mutex
	of map[string]*tenantShare
	// endlessOf counts the trials of each tenant that do not end.
	endlessOf map[string]int
}

// mostEndless is how many trials that do not end leave their slots to others: as many as it takes
// to find one bundle of many thousands. They cannot be stopped, and take processors from all others.
const mostEndless = 16

// mostOwnEndless is how many of these may be of one tenant: its further bundles cannot be judged then, and those of others can.
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

// keepRunning has a trial that does not end keep no other one from being made. The caller calls what it returns when it has ended.
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

// shareForTenant is that of a namespace; nil of "", which is no tenant.
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

// checkOverspent is an error if a tenant has had its time, with what evaluations of the
// policies of a revision take that did not end.
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
