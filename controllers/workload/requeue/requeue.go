// SPDX-License-Identifier: Apache-2.0

// Package requeue says when an object is looked at again though nothing has changed.
package requeue

import (
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Undecided is how soon a decision that failed is asked for again.
const Undecided = 5 * time.Second

// EarliestDelay is the earlier of two times, of which 0 is none.
func EarliestDelay(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// DecisionDelay is when the passing of time alone may change an answer, of which untils are the times
// that its holds name, as RFC 3339; 0 for never.
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
