// SPDX-License-Identifier: Apache-2.0

package explain

import "k8s.io/apimachinery/pkg/runtime/schema"

// kept is how many refusals are remembered, about two kilobytes each, and
// the question besides.
const kept = 2000

// refusals are requests that were refused, or let through by way of exception. They
// are kept in a ring, since a client may repeat a request without end.
type refusals struct {
	ring []Answer
	next int
}

func (r *refusals) put(a Answer) {
	if len(r.ring) < kept {
		r.ring = append(r.ring, a)
		return
	}
	r.ring[r.next] = a
	r.next = (r.next + 1) % kept
}

// latest are those that match, the latest first, at most limit of them.
func (r *refusals) latest(limit int, match func(*Answer) bool) []Answer {
	var out []Answer
	for i := range r.ring {
		a := &r.ring[(r.next+len(r.ring)-1-i)%len(r.ring)]
		if !match(a) {
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
	s.refusals.put(a)
}

// Sought says which refusals are meant; what is empty means all.
type Sought struct {
	UID  string // of the request
	User string
	// Resource is that of the object as kubectl names it, such as pods or
	// deployments.apps.
	Resource, Namespace, Name string
}

// Refusals are those that are sought, the latest first, at most limit of them.
func (s *Store) Refusals(q Sought, limit int) []Answer {
	same := func(want, got string) bool { return want == "" || want == got }
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.refusals.latest(limit, func(a *Answer) bool {
		return same(q.UID, a.Request.UID) && same(q.User, a.Request.User) && same(q.Resource, a.Request.Name()) &&
			same(q.Namespace, a.Subject.Namespace) && same(q.Name, a.Subject.Name)
	})
}

// Name is the resource as kubectl names it.
func (r *Request) Name() string {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}.String()
}
