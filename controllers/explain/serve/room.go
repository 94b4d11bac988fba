// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"
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
type room struct{ wholes, singles chan struct{} }

func newRoom() room {
	return room{wholes: make(chan struct{}, AnswersAtOnce/2), singles: make(chan struct{}, SinglesAtOnce)}
}

// takeSlot waits for a slot for the answer to a question, which leave gives back. If there is none there is an answer already.
func (s *Server) takeSlot(w http.ResponseWriter, req *http.Request, q explain.Question, r *room) (leave func(), ok bool) {
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
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, true
	case <-late.C:
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, q.APIResource(),
			fmt.Sprintf("%s answers %d such questions at once, and no other one ended within %s; ask again in a moment", s.Replica, cap(slots), wait))
	case <-req.Context().Done(): // the caller has gone
	}
	return nil, false
}
