// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"container/list"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Store keeps the last round of each workload. If all rounds together would exceed its bound, it forgets the oldest rounds, and
// says so in its answers.
type Store struct {
	max int

	mu     sync.RWMutex
	rounds map[subjectKey]*stored
	places map[string]subjectKey // by UID
	order  *list.List            // of *stored whose rounds are remembered, the latest in front
	bytes  int                   // of these rounds

	observers []RoundObserver

	refusals refusals
}

// subjectKey is the key of a workload in questions. A workload that was deleted and created again has one entry.
type subjectKey struct{ group, kind, namespace, name string }

type stored struct {
	subject decision.Subject
	round   Round
	at      time.Time
	bytes   int
	element *list.Element // nil once the round is forgotten
}

// RoundBytes bounds the rounds that a Store keeps, in bytes. A round takes a few kilobytes, and half a kilobyte for each
// pod.
const RoundBytes = 16 << 20

// StoreOption changes a Store.
type StoreOption func(*Store)

// WithMaxBytes sets how many bytes of rounds are kept; RoundBytes if unset.
func WithMaxBytes(n int) StoreOption { return func(s *Store) { s.max = n } }

// NewStore makes an empty Store.
func NewStore(options ...StoreOption) *Store {
	s := &Store{max: RoundBytes, rounds: map[subjectKey]*stored{}, places: map[string]subjectKey{}, order: list.New()}
	for _, o := range options {
		o(s)
	}
	return s
}

// PutRound stores a round in place of the previous one, and shows it to the observers.
func (s *Store) PutRound(subject decision.Subject, r Round) {
	observers, replaced := s.storeRound(subject, r)
	for _, o := range observers {
		if replaced != "" {
			o.ForgetWorkload(replaced)
		}
		o.ObserveRound(subject, r)
	}
}

// storeRound stores a round. It returns the observers, and the UID of an earlier workload of the name; empty if there is none.
func (s *Store) storeRound(subject decision.Subject, r Round) (observers []RoundObserver, replaced string) {
	next := &stored{subject: subject, round: r, at: time.Now(), bytes: storedBytes + r.CountBytes()}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := subjectKey{subject.Group, subject.Kind, subject.Namespace, subject.Name}
	if old := s.rounds[at]; old != nil {
		s.removeRound(old)
		if old.subject.UID != subject.UID {
			delete(s.places, old.subject.UID)
			replaced = old.subject.UID
		}
	}
	s.rounds[at] = next
	s.places[subject.UID] = at
	if next.bytes > s.max {
		s.forgetDecisions(next)
		return s.observers, replaced
	}
	next.element = s.order.PushFront(next)
	for s.bytes += next.bytes; s.bytes > s.max; {
		s.forgetDecisions(s.order.Back().Value.(*stored)) //nolint:forcetypeassert // nothing else is in the list
	}
	return s.observers, replaced
}

// ForgetWorkload drops a workload that is gone.
func (s *Store) ForgetWorkload(uid string) {
	s.mu.Lock()
	if at, ok := s.places[uid]; ok {
		s.removeRound(s.rounds[at])
		delete(s.rounds, at)
		delete(s.places, uid)
	}
	observers := s.observers
	s.mu.Unlock()
	for _, o := range observers {
		o.ForgetWorkload(uid)
	}
}

// removeRound removes a round from the remembered ones.
func (s *Store) removeRound(r *stored) {
	if r.element != nil {
		s.order.Remove(r.element)
		s.bytes -= r.bytes
		r.element = nil
	}
}

// ExplainWorkload explains a workload.
func (s *Store) ExplainWorkload(kind schema.GroupKind, namespace, name string) (Answer, bool) {
	r, ok := s.findRound(kind, namespace, name)
	if !ok {
		return Answer{}, false
	}
	return r.ExplainWorkload(), true
}

// PodsOf explains all pods of a workload.
func (s *Store) PodsOf(kind schema.GroupKind, namespace, name string) ([]Answer, bool) {
	r, ok := s.findRound(kind, namespace, name)
	if !ok {
		return nil, false
	}
	return r.ExplainPods(), true
}

func (s *Store) findRound(kind schema.GroupKind, namespace, name string) (Round, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.rounds[subjectKey{kind.Group, kind.Kind, namespace, name}]
	if !ok {
		return nil, false
	}
	return r.round, true
}

// ExplainPod explains a pod by the round of the workload that owns it, or says that the decisions about that
// workload are forgotten.
func (s *Store) ExplainPod(namespace, name string) (Answer, bool) {
	var owner *droppedRound
	for _, r := range s.candidateRounds(namespace, name) {
		if a, ok := r.ExplainPod(namespace, name); ok {
			return a, true
		}
		if f, ok := r.(*droppedRound); ok && f.ownsPods(name) && (owner == nil || len(f.subject.Name) > len(owner.subject.Name)) {
			owner = f
		}
	}
	if owner == nil {
		return Answer{}, false
	}
	return owner.answerForgotten(namespace, name), true
}

// ExplainPlacement explains why a pod is in its subset.
func (s *Store) ExplainPlacement(namespace, name string) (Answer, bool) {
	s.mu.RLock()
	var placers []RoundWithPlacements
	var lost []*droppedRound
	for _, r := range s.rounds {
		if r.subject.Namespace != namespace {
			continue
		}
		if p, ok := r.round.(RoundWithPlacements); ok {
			placers = append(placers, p)
		}
		if f, ok := r.round.(*droppedRound); ok && f.placer {
			lost = append(lost, f)
		}
	}
	s.mu.RUnlock()
	for _, p := range placers {
		if a, ok := p.ExplainPlacement(name); ok {
			return a, true
		}
	}
	if len(lost) == 0 {
		return Answer{}, false
	}
	return slices.MinFunc(lost, func(a, b *droppedRound) int { return strings.Compare(a.subject.Name, b.subject.Name) }).answerForgotten(namespace, name), true
}

// ExplainMissing explains what a pod should have been given but was not, by workload.
func (s *Store) ExplainMissing(namespace, name string) (out []Answer) {
	for _, r := range s.clusterScoped() {
		if l, ok := r.(RoundWithMissingPods); ok {
			if a, ok := l.ExplainMissing(namespace, name); ok {
				out = append(out, a)
			}
		}
	}
	return sortByWorkload(out)
}

// ExplainSidecars explains what SidecarSets decided about a pod that has their containers, by workload. A SidecarSet whose
// decisions are forgotten may have containers in the pod, and its answer says so.
func (s *Store) ExplainSidecars(namespace, name string) (out []Answer) {
	for _, r := range s.clusterScoped() {
		if a, ok := r.ExplainPod(namespace, name); ok {
			out = append(out, a)
		} else if f, ok := r.(*droppedRound); ok && !f.placer {
			out = append(out, f.answerForgotten(namespace, name))
		}
	}
	return sortByWorkload(out)
}

// clusterScoped are the rounds of workloads whose pods may be in any namespace.
func (s *Store) clusterScoped() (rounds []Round) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.rounds {
		if r.subject.Namespace == "" {
			rounds = append(rounds, r.round)
		}
	}
	return rounds
}

func sortByWorkload(answers []Answer) []Answer {
	slices.SortFunc(answers, func(a, b Answer) int { return strings.Compare(a.Workload.Name, b.Workload.Name) })
	return answers
}

// candidateRounds returns the rounds that may explain a pod.
func (s *Store) candidateRounds(namespace, pod string) (rounds []Round) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.rounds {
		// Pods are named after their workload, so most rounds need not be searched.
		if r.subject.Namespace == namespace && strings.HasPrefix(pod, r.subject.Name) {
			rounds = append(rounds, r.round)
		}
	}
	return rounds
}

// ListWorkloads lists the workloads that the store has answers about, sorted.
func (s *Store) ListWorkloads() []decision.Subject {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]decision.Subject, 0, len(s.rounds))
	for _, r := range s.rounds {
		out = append(out, r.subject)
	}
	slices.SortFunc(out, func(a, b decision.Subject) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out
}
