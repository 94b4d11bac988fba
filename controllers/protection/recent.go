// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// Window is how long a deletion is counted.
const Window = time.Minute

// most is how many deletions of one resource in one namespace are remembered. A limit of more than
// that in a minute has no effect.
const most = 4096

// Recent remembers the deletions of the last minute: those that this replica allowed, and those of
// pods that the watch reported. The watch reports deletions that other replicas allowed some
// milliseconds late, so a limit may be exceeded by the deletions in that time.
type Recent struct {
	now func() time.Time

	mu    sync.Mutex
	went  map[lot]*list
	swept time.Time
}

type lot struct{ group, resource, namespace string }

// list is in the order of time. A deletion that is allowed and then reported by the watch has one
// entry, with the time when it was allowed.
type list struct {
	entries []entry
	known   map[string]bool
}

type entry struct {
	uid, user string
	at        time.Time
}

// NewRecent makes an empty Recent.
func NewRecent(now func() time.Time) *Recent {
	return &Recent{now: now, went: map[lot]*list{}}
}

// CountDeletes counts the deletions before the request.
func (r *Recent) CountDeletes(a *Asked) points.Recent {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := points.Recent{Seconds: int(Window.Seconds())}
	l := r.went[lotOf(a.Object)]
	if l == nil {
		return out
	}
	l.dropBefore(r.now().Add(-Window))
	for _, e := range l.entries {
		if e.uid == a.Object.UID {
			continue // a repeated request for the same object
		}
		out.Deletes++
		if e.user != "" && e.user == a.Request.User.Name {
			out.UserDeletes++
		}
	}
	return out
}

// RemovesObject reports whether the request removes the object. Dry runs and changes do not.
func (a *Asked) RemovesObject() bool {
	op := a.Request.Operation
	return !a.Request.DryRun && (op == points.Delete || op == points.Evict)
}

// RecordRemoval notes that a request was allowed. The caller has checked that the object exists.
func (r *Recent) RecordRemoval(a *Asked) {
	if !a.RemovesObject() {
		return
	}
	r.addEntry(lotOf(a.Object), a.Object.UID, a.Request.User.Name)
}

// Watch notes pods whose deletion the watch shows, regardless of what allowed it.
func (r *Recent) Watch() cache.ResourceEventHandler {
	going := func(o any) {
		if tomb, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = tomb.Obj
		}
		if pod, err := meta.Accessor(o); err == nil {
			r.addEntry(lot{resource: "pods", namespace: pod.GetNamespace()}, string(pod.GetUID()), "")
		}
	}
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(was, is any) {
			before, errBefore := meta.Accessor(was)
			after, errAfter := meta.Accessor(is)
			if errBefore == nil && errAfter == nil && before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil {
				going(is)
			}
		},
		DeleteFunc: func(o any) {
			// A pod with a deletion timestamp was counted when its grace period began.
			if pod, err := meta.Accessor(o); err != nil || pod.GetDeletionTimestamp() == nil {
				going(o)
			}
		},
	}
}

func (r *Recent) addEntry(at lot, uid, user string) {
	if uid == "" {
		return
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropExpired(now)
	l := r.went[at]
	if l == nil {
		l = &list{known: map[string]bool{}}
		r.went[at] = l
	}
	l.dropBefore(now.Add(-Window))
	if l.known[uid] {
		return
	}
	if len(l.entries) == most {
		delete(l.known, l.entries[0].uid)
		l.entries = slices.Delete(l.entries, 0, 1)
	}
	l.entries = append(l.entries, entry{uid: uid, user: user, at: now})
	l.known[uid] = true
}

// dropExpired drops entries that are older than Window.
func (r *Recent) dropExpired(now time.Time) {
	if now.Sub(r.swept) < Window {
		return
	}
	r.swept = now
	for at, l := range r.went {
		if l.dropBefore(now.Add(-Window)); len(l.entries) == 0 {
			delete(r.went, at)
		}
	}
}

func (l *list) dropBefore(before time.Time) {
	n := 0
	for n < len(l.entries) && l.entries[n].at.Before(before) {
		delete(l.known, l.entries[n].uid)
		n++
	}
	l.entries = slices.Delete(l.entries, 0, n)
}

func lotOf(o points.Object) lot { return lot{o.Group, o.Resource, o.Namespace} }
