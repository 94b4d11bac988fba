// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is remembered of refusals, about two kilobytes each, and the question besides. The question is what a user sent,
// maybe in a dry run, and before the API server has limited it.
const (
	kept = 2000
	// RefusalBytes is what all may take together, and mostQuestion what one question may; of a larger one the answer is
	// remembered, without what would have changed it. An answer that is larger still is not.
	RefusalBytes = 16 << 20
	mostQuestion = 64 << 10
	mostAnswer   = 128 << 10
)

// refusals are requests that were refused, or let through by way of exception. They
// are kept in a ring, since a client may repeat a request without end.
type refusals struct {
	ring  []Answer
	next  int
	sizes []int // of those in the ring
	bytes int
}

func (r *refusals) addRefusal(a Answer) {
	if a.NearBytes > mostQuestion {
		a.Near, a.NearBytes = nil, 0
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

// forgetOldest makes room. The ring begins anew with those that are left, the oldest first.
func (r *refusals) forgetOldest() {
	ring, sizes := append(append([]Answer{}, r.ring[r.next:]...), r.ring[:r.next]...), append(append([]int{}, r.sizes[r.next:]...), r.sizes[:r.next]...)
	drop := len(ring)/8 + 1 // several at once: it is not done for each that comes
	for _, size := range sizes[:drop] {
		r.bytes -= size
	}
	r.ring, r.sizes, r.next = append([]Answer(nil), ring[drop:]...), append([]int(nil), sizes[drop:]...), 0
}

// findLatest are those that match, the findLatest first, at most limit of them after the first ones that are skipped.
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

// RefusalFilter says which refusals are meant; what is empty means all.
type RefusalFilter struct {
	UID  string // of the request
	User string
	// Resource is that of the object as kubectl names it, such as pods or
	// deployments.apps.
	Resource, Namespace, Name string
	// Skip is how many of the latest are left out.
	Skip int
}

// FindRefusals are those that are sought, the latest first, at most limit of them.
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
