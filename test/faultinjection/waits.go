// SPDX-License-Identifier: Apache-2.0

package faultinjection

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Wait is something that is missing, or refused, for good.
type Wait struct {
	// Arrange makes it missing before the controller begins.
	Arrange func(*Cluster)
	// Refuse says which writes are refused.
	Refuse func(Call) bool
	// Says is what a status or an annotation has to say of it, in part. Events are gone after an hour.
	Says string
	// Tells is what events have to say of it, in part, where the status of the object is another one's: again while it lasts.
	Tells string
	// Resolve ends the wait. What is refused is not refused any more.
	Resolve func(*Cluster)
	// Reaches says what is wrong with the state in the end, empty if nothing is.
	Reaches func(*Cluster) string
}

// eventTime is how long an API server keeps an event.
const eventTime = time.Hour

// checkTold reports a time in which no event was there that says something.
func (r *run) checkTold(what string) {
	r.t.Helper()
	if what == "" {
		return
	}
	last, told := began, false
	for _, e := range r.events.listEvents() {
		if !strings.Contains(e.text, what) {
			continue
		}
		if e.at.Sub(last) > eventTime {
			break
		}
		last, told = e.at, true
	}
	if !told || r.now.Sub(last) > eventTime {
		r.t.Errorf("while it waits, until %s, no event says %q after %s: %v", r.now.Sub(began), what, last.Sub(began), r.events.listEvents())
	}
}

// RefuseCreates is the wait for a quota that refuses each object of a kind.
func RefuseCreates(kind string, reaches func(*Cluster) string) Wait {
	return Wait{
		Refuse:  func(c Call) bool { return c.Verb == "create" && c.Kind == kind },
		Says:    "an admission webhook refuses it",
		Reaches: reaches,
	}
}

// WantPods says whether so many pods are ready, for Wait.Reaches.
func WantPods(want int) func(*Cluster) string {
	return func(c *Cluster) string {
		if ready := RunPods(c); ready != want {
			return fmt.Sprintf("%d pods are ready, want %d", ready, want)
		}
		return ""
	}
}

// RunWait checks that a controller which cannot go on says what it waits for, is not called without
// end, and goes on once it can, within Delay.
func (s Scenario) RunWait(t *testing.T, w Wait) {
	t.Helper()
	s = s.withDefaults()
	if w.Tells != "" {
		s.Quiet = max(s.Quiet, 2*eventTime)
	}
	refusing := true
	r := newRun(t, &s, nil)
	if w.Refuse != nil {
		r.injector.choose = func(c Call, _ time.Time) Fault {
			if refusing && c.IsWrite() && w.Refuse(c) {
				return Refused
			}
			return ""
		}
	}
	if w.Arrange != nil {
		w.Arrange(&Cluster{Client: r.store, Now: r.now, t: t})
	}
	r.runUntilQuiet()
	if r.rounds >= s.Rounds {
		t.Errorf("while it waits: %v", r.err)
	}
	if said := strings.Join(r.store.describeState(s.Random), "\n"); !strings.Contains(said, w.Says) {
		t.Errorf("while it waits nothing says %q:\n%s", w.Says, said)
	}
	r.checkTold(w.Tells)
	refusing = false
	from := r.now
	r.observeChanges(func() {
		if w.Resolve != nil {
			w.Resolve(&Cluster{Client: r.store, Now: r.now, t: t})
		}
	})
	r.changed = r.now
	r.runUntilQuiet()
	if wrong := w.Reaches(&Cluster{Client: r.store, Now: r.now, t: t}); wrong != "" || r.err != nil {
		t.Errorf("once it can go on: %s; %v", wrong, r.err)
	}
	if took := r.changed.Sub(from); took > s.Delay {
		t.Errorf("it went on %s after it could, want %s at the most", took, s.Delay)
	}
}
