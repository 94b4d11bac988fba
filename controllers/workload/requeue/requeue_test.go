// SPDX-License-Identifier: Apache-2.0

package requeue_test

import (
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine/decision"
)

func TestSooner(t *testing.T) {
	for _, tc := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {3, 2, 2}, {2, 3, 2}} {
		if got := requeue.EarliestDelay(tc.a, tc.b); got != tc.want {
			t.Errorf("of %d and %d the sooner is %d", tc.a, tc.b, got)
		}
	}
}

func TestDecided(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		outcome decision.Outcome
		untils  []string
		want    time.Duration
	}{
		{decision.Decided, nil, 0},
		{decision.Decided, []string{"", "tomorrow"}, 0},
		{decision.Decided, []string{"2026-01-02T03:05:00Z", "2026-01-02T03:04:00Z"}, 4 * time.Minute},
		{decision.Decided, []string{"2026-01-02T02:00:00Z"}, time.Second},
		{decision.TimedOut, []string{"2026-01-02T03:04:00Z"}, requeue.Undecided},
	} {
		if got := requeue.DecisionDelay(decision.Record{Outcome: tc.outcome}, now, tc.untils...); got != tc.want {
			t.Errorf("%s %v: %s, want %s", tc.outcome, tc.untils, got, tc.want)
		}
	}
}
