// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Store keeps the last round of each workload.
type Store struct {
	mu     sync.RWMutex
	rounds map[place]stored
	places map[string]place // by UID

	refusals refusals
}

// place is what people ask by. One that was deleted and made anew is there once.
type place struct{ group, kind, namespace, name string }

type stored struct {
	subject decision.Subject
	round   Round
}

// NewStore makes an empty Store.
func NewStore() *Store {
	return &Store{rounds: map[place]stored{}, places: map[string]place{}}
}

// Put keeps a round in place of the one before.
func (s *Store) Put(subject decision.Subject, r Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{subject.Group, subject.Kind, subject.Namespace, subject.Name}
	if old := s.rounds[at].subject.UID; old != subject.UID {
		delete(s.places, old)
	}
	s.rounds[at] = stored{subject, r}
	s.places[subject.UID] = at
}

// Forget drops a workload that is gone.
func (s *Store) Forget(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.places[uid]; ok {
		delete(s.rounds, at)
		delete(s.places, uid)
	}
}

// Workload explains a workload.
func (s *Store) Workload(kind schema.GroupKind, namespace, name string) (Answer, bool) {
	r, ok := s.find(kind, namespace, name)
	if !ok {
		return Answer{}, false
	}
	return r.Workload(), true
}

// PodsOf explains all pods of a workload.
func (s *Store) PodsOf(kind schema.GroupKind, namespace, name string) ([]Answer, bool) {
	r, ok := s.find(kind, namespace, name)
	if !ok {
		return nil, false
	}
	return r.Pods(), true
}

func (s *Store) find(kind schema.GroupKind, namespace, name string) (Round, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.rounds[place{kind.Group, kind.Kind, namespace, name}]
	return r.round, ok
}

// Pod explains a pod of whichever workload owns it.
func (s *Store) Pod(namespace, name string) (Answer, bool) {
	for _, r := range s.near(namespace, name) {
		if a, ok := r.Pod(namespace, name); ok {
			return a, true
		}
	}
	return Answer{}, false
}

// Placed explains why a pod is in its subset.
func (s *Store) Placed(namespace, name string) (Answer, bool) {
	s.mu.RLock()
	var placers []Placer
	for _, r := range s.rounds {
		if p, ok := r.round.(Placer); ok && r.subject.Namespace == namespace {
			placers = append(placers, p)
		}
	}
	s.mu.RUnlock()
	for _, p := range placers {
		if a, ok := p.Placed(name); ok {
			return a, true
		}
	}
	return Answer{}, false
}

// Lacks explains what a pod should have been given and was not, by workload.
func (s *Store) Lacks(namespace, name string) (out []Answer) {
	for _, r := range s.clusterScoped() {
		if l, ok := r.(Lacker); ok {
			if a, ok := l.Lacks(namespace, name); ok {
				out = append(out, a)
			}
		}
	}
	return sortByWorkload(out)
}

// Sidecars explains what SidecarSets decided about a pod that has their containers, by workload.
func (s *Store) Sidecars(namespace, name string) (out []Answer) {
	for _, r := range s.clusterScoped() {
		if a, ok := r.Pod(namespace, name); ok {
			out = append(out, a)
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

// near are the rounds that may know a pod.
func (s *Store) near(namespace, pod string) (rounds []Round) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.rounds {
		// Pods are named after their workload, so most need not be asked.
		if r.subject.Namespace == namespace && strings.HasPrefix(pod, r.subject.Name) {
			rounds = append(rounds, r.round)
		}
	}
	return rounds
}

// Workloads lists what there are answers about, sorted.
func (s *Store) Workloads() []decision.Subject {
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
