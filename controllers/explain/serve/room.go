// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
)

// Bounds of answers. Each answer is in memory while it is made and sent, twice at most. Answers to users and answers to
// other managers have separate bounds, since otherwise two managers could wait for each other.
const (
	// LargestAnswer is how many bytes an answer with records, or about a workload with its pods, may have. AnswersAtOnce is
	// how many of these are made at once: one for a user and one for another manager.
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

// slots are shared by users: one user, or the service accounts of one namespace, waits for or has
// at most a quarter of them at once, and at least one. Further questions of that user wait for the
// user's own slots, so that a user who asks without end does not make others wait. The same holds
// for a user who does not read: while others wait, sending an answer is limited in time.
type slots struct {
	all chan struct{}

	mu   sync.Mutex
	each map[string]*turns
	// sending are the slots whose answers are being sent.
	sending map[*slot]struct{}
}

// slot is the slot of one answer.
type slot struct {
	of    *slots
	user  string
	taken []chan struct{}
	turns *turns // of the user; nil if there is none
	// to is where the answer is sent to, since is when that began; the mutex of the slots guards both.
	to    http.ResponseWriter
	since time.Time
}

// turns are the slots that one user may have; users counts the questions that wait for one or have one.
type turns struct {
	own   chan struct{}
	users int
}

func newSlots(n int) *slots {
	return &slots{all: make(chan struct{}, n), each: map[string]*turns{}, sending: map[*slot]struct{}{}}
}

// joinTurns counts a question of a user until leaveTurns.
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

// takeSlotOf waits for a slot until done is closed or late fires. An empty user waits for no turns. Answers of other users that take
// longer than turn to send are cut off meanwhile.
func (s *slots) takeSlotOf(user string, done <-chan struct{}, late <-chan time.Time, turn time.Duration) (*slot, bool) {
	user = sharerOf(user)
	out := &slot{of: s, user: user}
	gates := []chan struct{}{s.all}
	if user != "" {
		out.turns = s.joinTurns(user)
		gates = []chan struct{}{out.turns.own, s.all}
	}
	look := time.NewTicker(max(turn/4, time.Millisecond))
	defer look.Stop()
	for len(out.taken) < len(gates) {
		gate := gates[len(out.taken)]
		// Of what is ready, the select below takes any. A question that comes late takes a slot that is free, and a
		// caller who has gone takes none.
		select {
		case <-done:
			out.leaveSlot()
			return nil, false
		default:
		}
		select {
		case gate <- struct{}{}:
			out.taken = append(out.taken, gate)
			continue
		default:
		}
		select {
		case gate <- struct{}{}:
			out.taken = append(out.taken, gate)
		case <-look.C:
			if gate == s.all { // otherwise the user waits for their own slots
				s.cutSlow(user, turn)
			}
		case <-late:
			out.leaveSlot()
			return nil, false
		case <-done:
			out.leaveSlot()
			return nil, false
		}
	}
	return out, true
}

// sharerOf returns the name that a user's slots are counted under. The service accounts of a namespace count as one user, since a
// client that may create one may create many.
func sharerOf(user string) string {
	if namespace, _, err := serviceaccount.SplitUsername(user); err == nil {
		return serviceaccount.MakeNamespaceGroupName(namespace)
	}
	return user
}

// startSending notes that the answer is being sent from now on.
func (o *slot) startSending(w http.ResponseWriter) {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.to, o.since = w, time.Now()
	o.of.sending[o] = struct{}{}
}

// leaveSlot releases the slot. Its answer is not cut off after that.
func (o *slot) leaveSlot() {
	o.of.mu.Lock()
	delete(o.of.sending, o)
	o.of.mu.Unlock()
	for _, gate := range o.taken {
		<-gate
	}
	if o.turns != nil {
		o.of.leaveTurns(o.user, o.turns)
	}
}

// cutSlow cuts off answers to other users that take longer than turn to send.
func (s *slots) cutSlow(user string, turn time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := range s.sending {
		if (user == "" || o.user != user) && time.Since(o.since) >= turn {
			delete(s.sending, o)
			_ = http.NewResponseController(o.to).SetWriteDeadline(time.Now().Add(-time.Second)) // it fails only if the caller has closed the connection
		}
	}
}

// waitTimes returns how long a question waits for a slot, and how long sending an answer may take meanwhile.
func (s *Server) waitTimes() (wait, turn time.Duration) {
	wait = cmp.Or(s.RoomWait, roomWait)
	return wait, wait / 2
}

// takeSlot waits for a slot for the answer to a question; the caller must leave the slot. If it returns false, it has written
// a response. user is the user who asks, "" for another manager.
func (s *Server) takeSlot(w http.ResponseWriter, req *http.Request, q explain.Question, r *room, user string) (*slot, bool) {
	slots := r.singles
	if q.Pods {
		slots = r.wholes
	}
	wait, turn := s.waitTimes()
	late := time.NewTimer(wait)
	defer late.Stop()
	out, ok := slots.takeSlotOf(user, req.Context().Done(), late.C, turn)
	if !ok && req.Context().Err() == nil { // otherwise the caller has closed the connection
		w.Header().Set("Retry-After", "1")
		writeFailure(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, q.APIResource(),
			fmt.Sprintf("%s answers %d such questions at once, %d of one user, and no other one ended within %s; ask again in a moment", s.Replica, cap(slots.all), max(cap(slots.all)/4, 1), wait))
	}
	return out, ok
}
