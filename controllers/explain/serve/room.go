// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
)

// Bounds of answers. Each is in memory while it is made and sent, twice at most. Those to users and those to other managers
// have bounds of their own, or else two managers could wait for each other.
const (
	// LargestAnswer is how many bytes records, or a workload with its pods, may have. AnswersAtOnce are one to a user and one
	// to another manager.
	LargestAnswer = replicas.MostPeerAnswer
	AnswersAtOnce = 2
	// LargestSingle is how many bytes any other answer may have, and SinglesAtOnce how many of these are made at once for
	// users, and for other managers.
	LargestSingle = 256 << 10
	SinglesAtOnce = 16
	// roomWait is how long a question waits for others before it is refused.
	roomWait = 5 * time.Second
)

// room has a slot for each answer that may be in memory at once.
type room struct{ wholes, singles *slots }

func newRoom() room {
	return room{wholes: newSlots(AnswersAtOnce / 2), singles: newSlots(SinglesAtOnce)}
}

// slots are shared by users: one user waits for, and has, a quarter of them at once, and one at least. What they ask beyond that
// waits for their own, so that one user who asks without end keeps no other one waiting.
type slots struct {
	all chan struct{}

	mu   sync.Mutex
	each map[string]*turns
}

// turns are the slots that one user may have, and counts those who wait for one or have it.
type turns struct {
	own   chan struct{}
	users int
}

func newSlots(n int) *slots { return &slots{all: make(chan struct{}, n), each: map[string]*turns{}} }

// joinTurns counts a question of a user; leave counts it no more.
func (s *slots) joinTurns(user string) *turns {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.each[user]
	if t == nil {
		t = &turns{own: make(chan struct{}, max(cap(s.all)/4, 1))}
		s.each[user] = t
	}
	t.users++
	return t
}

func (s *slots) leaveTurns(user string, t *turns) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(s.each, user)
	}
}

// takeSlotOf waits for a slot until done is closed or late fires. An empty user has no turns to wait for.
func (s *slots) takeSlotOf(user string, done <-chan struct{}, late <-chan time.Time) (leave func(), ok bool) {
	gates := []chan struct{}{s.all}
	forget := func() {}
	if user != "" {
		mine := s.joinTurns(user)
		gates, forget = []chan struct{}{mine.own, s.all}, func() { s.leaveTurns(user, mine) }
	}
	taken := 0
	leave = func() {
		for _, gate := range gates[:taken] {
			<-gate
		}
		forget()
	}
	for _, gate := range gates {
		select {
		case gate <- struct{}{}:
			taken++
		case <-late:
			leave()
			return nil, false
		case <-done:
			leave()
			return nil, false
		}
	}
	return leave, true
}

// takeSlot waits for a slot for the answer to a question, which leave gives back. If there is none there is an answer already.
// user is who asks, "" for another manager.
func (s *Server) takeSlot(w http.ResponseWriter, req *http.Request, q explain.Question, r *room, user string) (leave func(), ok bool) {
	slots := r.singles
	if q.Pods {
		slots = r.wholes
	}
	wait := s.RoomWait
	if wait == 0 {
		wait = roomWait
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	leave, ok = slots.takeSlotOf(user, req.Context().Done(), late.C)
	if !ok && req.Context().Err() == nil { // else the caller has gone
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, q.APIResource(),
			fmt.Sprintf("%s answers %d such questions at once, %d of one user, and no other one ended within %s; ask again in a moment", s.Replica, cap(slots.all), max(cap(slots.all)/4, 1), wait))
	}
	return leave, ok
}
