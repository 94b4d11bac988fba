// SPDX-License-Identifier: Apache-2.0

package faultinjection

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/test/proptest"
)

const (
	// outage is how long a fault that persists goes on.
	outage = 5 * time.Minute
	// mostFailing is how many rounds may be made during an outage: some 15 while the back-off grows, one a
	// second at the most where a timer is shorter, and those of events.
	mostFailing = 330
	// mostChanges is how often the state may change in the second half of an outage. A status that each round writes changes once a minute
	// or more often, since the back-off is a minute then: what one round writes another one takes back, or the time of a condition moves.
	mostChanges = 1
)

// Run checks that the controller reaches its end state whatever call fails, once or for some minutes.
// It prints how many runs that are. Of a scenario with many of them it makes some, unless FAULTINJECTION_ALL is set.
func (s Scenario) Run(t *testing.T) {
	t.Helper()
	s = s.withDefaults()
	first := newRun(t, &s, nil)
	first.runUntilQuiet()
	if first.err != nil {
		t.Fatalf("without faults: %v", first.err)
	}
	calls, want := first.injector.listCalls(), first.store.describeState(s.Random)
	if !s.OnlyReads && !slices.ContainsFunc(calls, Call.IsWrite) {
		t.Fatalf("without faults the controller writes nothing:\n%s", describeCalls(calls))
	}
	plan := s.planRuns(calls)
	chosen := thinOut(plan, len(calls))
	for _, p := range chosen {
		if p.persists {
			s.checkOutage(t, p.call, p.fault, want, first.changed)
		} else {
			s.checkOnce(t, p.call, p.fault, want, first.changed)
		}
	}
	writes := 0
	for _, c := range calls {
		if c.IsWrite() {
			writes++
		}
	}
	t.Logf("%d calls, of which %d are writes, in %d rounds without faults, %d of %d runs with one", len(calls), writes, first.rounds, len(chosen), len(plan))
}

// planned is a run with a fault.
type planned struct {
	call     Call
	fault    Fault
	persists bool
}

// planRuns lists the runs with a fault.
func (s *Scenario) planRuns(calls []Call) (out []planned) {
	for _, fault := range allFaults() {
		for i, c := range calls {
			if fault.appliesTo(s, c) && isWorthwhile(c, fault, calls[:i]) && (s.Skip == nil || !s.Skip(c, fault)) {
				out = append(out, planned{call: c, fault: fault})
			}
		}
	}
	for i, c := range calls {
		for _, fault := range []Fault{InternalError, Conflict} {
			if fault.appliesTo(s, c) && !slices.ContainsFunc(calls[:i], c.sameAs) && (s.Skip == nil || !s.Skip(c, fault)) {
				out = append(out, planned{call: c, fault: fault, persists: true})
			}
		}
	}
	return out
}

const (
	// mostCalls is how many calls are made in all runs with a fault of a scenario, but for those after the fault: some
	// seconds' worth.
	mostCalls = 1000
	// fewestRuns are made in any case, but for the race detector.
	fewestRuns = 15
	// allRuns is the environment variable by which all are made.
	allRuns = "FAULTINJECTION_ALL"
)

// thinOut chooses runs evenly where there are many calls.
func thinOut(plan []planned, calls int) []planned {
	most := max(2, proptest.Often(max(fewestRuns, mostCalls/calls))) // fewer with the race detector
	if len(plan) <= most || os.Getenv(allRuns) != "" {
		return plan
	}
	out := make([]planned, 0, most)
	for i := range most {
		out = append(out, plan[i*len(plan)/most])
	}
	return out
}

// isWorthwhile reports whether a fault of a call says something that it does not say of the same call before:
// all writes, and the first two reads, of which the first one with each error.
func isWorthwhile(c Call, fault Fault, before []Call) bool {
	seen := 0
	for _, other := range before {
		if c.sameAs(other) {
			seen++
		}
	}
	return c.IsWrite() && seen < 4 || seen == 0 || seen == 1 && fault != DeadlineExceeded
}

// checkOnce has one call fail once.
func (s *Scenario) checkOnce(t *testing.T, at Call, fault Fault, want []string, changed time.Time) {
	t.Helper()
	r := newRun(t, s, func(c Call, _ time.Time) Fault {
		if c.Number == at.Number {
			return fault
		}
		return ""
	})
	r.runUntilQuiet()
	r.reportDifference(fmt.Sprintf("%s at %s", fault, at), want, latestOf(changed, r.injector.at).Add(s.Delay))
}

// checkOutage has all calls fail that are like one, for some minutes.
func (s *Scenario) checkOutage(t *testing.T, at Call, fault Fault, want []string, changed time.Time) {
	t.Helper()
	failing := 0
	end := began.Add(outage)
	r := newRun(t, s, func(c Call, now time.Time) Fault {
		if c.sameAs(at) && now.Before(end) {
			failing++
			return fault
		}
		return ""
	})
	r.runUntilQuiet()
	at.Number = 0
	what := fmt.Sprintf("%s for %s at each %s", fault, outage, strings.TrimPrefix(at.String(), "call 0: "))
	r.reportDifference(what, want, changed.Add(outage+s.Delay))
	if failing > mostFailing {
		t.Errorf("%s: it was made %d times, want a back-off", what, failing)
	}
	if n := countBetween(r.changes, end.Add(-outage/2), end); n > mostChanges {
		t.Errorf("%s: the state changes %d times in the last %s of that, want it to come to rest; the last calls are\n%s", what, n, outage/2, r.lastCalls())
	}
}

// countBetween counts the times after one time and before another.
func countBetween(times []time.Time, after, before time.Time) (n int) {
	for _, at := range times {
		if at.After(after) && at.Before(before) {
			n++
		}
	}
	return n
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// reportDifference says how an end state differs from the one that is wanted.
func (r *run) reportDifference(what string, want []string, until time.Time) {
	r.t.Helper()
	switch got := r.store.describeState(r.scenario.Random); {
	case r.err != nil:
		r.t.Errorf("%s: the last round failed: %v", what, r.err)
	case !slices.Equal(got, want):
		r.t.Errorf("%s: after %d rounds and %s the state differs (-want +got):\n%s%s", what, r.rounds, r.now.Sub(began), cmp.Diff(want, got), r.silent)
	case r.changed.After(until):
		r.t.Errorf("%s: the end came after %s, want %s at the most", what, r.changed.Sub(began), until.Sub(began))
	}
}
