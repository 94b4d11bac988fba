// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bounds of the refusals that are remembered. An answer takes about two kilobytes, and its input comes in addition. The
// input is what a user sent, maybe in a dry run, before the API server has limited its size.
const (
	kept = 2000
	// RefusalBytes is how much memory all refusals may take together, and mostQuestion how much one input may take.
	// With a larger input only the answer is remembered, without what would change it. An answer larger than
	// mostAnswer is not remembered.
	RefusalBytes = 16 << 20
	mostQuestion = 64 << 10
	mostAnswer   = 128 << 10
)

// refusals are requests that were refused, or were allowed as an exception. They are kept in a ring,
// since a client may repeat a request without end.
type refusals struct {
	ring  []Answer
	next  int
	sizes []int // of the answers in the ring
	bytes int
}

func (r *refusals) addRefusal(a Answer) {
	if a.NearBytes > mostQuestion {
		a.Near, a.Basis, a.NearBytes = nil, nil, 0
	}
	text, err := json.Marshal(a)
	if err != nil || len(text) > mostAnswer {
		return
	}
	size := 2*len(text) + a.NearBytes // names of fields are not kept, but each string and list has a head
	for r.bytes += size; r.bytes > RefusalBytes; {
		r.forgetOldest()
	}
	if len(r.ring) < kept {
		r.ring, r.sizes = append(r.ring, a), append(r.sizes, size)
		return
	}
	r.bytes -= r.sizes[r.next]
	r.ring[r.next], r.sizes[r.next] = a, size
	r.next = (r.next + 1) % kept
}

// forgetOldest makes room. The ring starts over with the answers that are left, the oldest first.
func (r *refusals) forgetOldest() {
	ring, sizes := append(append([]Answer{}, r.ring[r.next:]...), r.ring[:r.next]...), append(append([]int{}, r.sizes[r.next:]...), r.sizes[:r.next]...)
	drop := len(ring)/8 + 1 // several at once, so that this does not happen for each new answer
	for _, size := range sizes[:drop] {
		r.bytes -= size
	}
	r.ring, r.sizes, r.next = append([]Answer(nil), ring[drop:]...), append([]int(nil), sizes[drop:]...), 0
}

// findLatest returns the answers that match, the latest first: it skips some, and returns at most limit.
func (r *refusals) findLatest(skip, limit int, match func(*Answer) bool) []Answer {
	var out []Answer
	for i := range r.ring {
		a := &r.ring[(r.next+len(r.ring)-1-i)%len(r.ring)]
		if !match(a) {
			continue
		}
		if skip--; skip >= 0 {
			continue
		}
		if out = append(out, *a); len(out) == limit {
			break
		}
	}
	return out
}

// PutRefusal keeps the answer about a request.
func (s *Store) PutRefusal(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals.addRefusal(a)
}

// RefusalFilter selects refusals; an empty field selects all.
type RefusalFilter struct {
	UID  string // of the request
	User string
	// Resource is the resource of the object as kubectl names it, such as pods or deployments.apps.
	Resource, Namespace, Name string
	// Skip is how many of the latest refusals are left out.
	Skip int
}

// FindRefusals returns the refusals that the filter selects, the latest first, at most limit.
func (s *Store) FindRefusals(q RefusalFilter, limit int) []Answer {
	same := func(want, got string) bool { return want == "" || want == got }
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.refusals.findLatest(q.Skip, limit, func(a *Answer) bool {
		return same(q.UID, a.Request.UID) && same(q.User, a.Request.User) && same(q.Resource, a.Request.Name()) &&
			same(q.Namespace, a.Subject.Namespace) && same(q.Name, a.Subject.Name)
	})
}

// Name is the resource as kubectl names it.
func (r *Request) Name() string {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
}
