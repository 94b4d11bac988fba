// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// RoundWithProgress is a Round of a rollout.
type RoundWithProgress interface {
	// TallyPods counts the pods by verdict, and counts those that are not up to date by reason, the most frequent first.
	TallyPods() (map[Verdict]int, []ReasonCount)
	// MeasureProgress says how far the rollout is.
	MeasureProgress() Progress
}

// Progress is how far a rollout is after a round.
type Progress struct {
	// At is when the round decided.
	At time.Time
	// Revision is the one that pods are updated to.
	Revision string
	// Outdated counts the pods that exist and are still to be updated. A partition leaves out the pods that it keeps.
	Outdated int
	// Moved counts the pods whose update the round started.
	Moved int
	// Complete is true if all pods that are to be updated are, and all pods exist and are available.
	Complete bool
}

// RoundObserver sees the rounds that a Store gets.
type RoundObserver interface {
	// ObserveRound gets a round after it is stored. Rounds of one workload come one after the other.
	ObserveRound(subject decision.Subject, r Round)
	// ForgetWorkload is called for a workload that is gone.
	ForgetWorkload(uid string)
}

// AddObserver adds an observer of the rounds that are stored from now on.
func (s *Store) AddObserver(o RoundObserver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observers = append(s.observers, o)
}

// ForEachRound calls f for the last round of each workload, in no order.
func (s *Store) ForEachRound(f func(decision.Subject, Round)) {
	s.mu.RLock()
	all := make([]*stored, 0, len(s.rounds))
	for _, r := range s.rounds {
		all = append(all, &stored{subject: r.subject, round: r.round})
	}
	s.mu.RUnlock()
	for _, r := range all {
		f(r.subject, r.round)
	}
}
