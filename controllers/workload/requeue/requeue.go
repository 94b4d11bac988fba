// SPDX-License-Identifier: Apache-2.0

// Package requeue computes when an object is reconciled again though nothing has changed.
package requeue

import (
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Undecided is how soon a decision that failed is evaluated again.
const Undecided = 5 * time.Second

// EarliestDelay returns the shorter of two delays; 0 means none.
func EarliestDelay(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// DecisionDelay returns after which delay the passing of time alone may change an answer; 0 for never. untils are the times
// in its holds, as RFC 3339.
func DecisionDelay(record decision.Record, now time.Time, untils ...string) (after time.Duration) {
	if record.Outcome != decision.Decided {
		return Undecided
	}
	for _, text := range untils {
		if until, err := time.Parse(time.RFC3339, text); err == nil {
			after = EarliestDelay(after, max(until.Sub(now), time.Second))
		}
	}
	return after
}
