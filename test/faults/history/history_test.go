// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// story writes histories: each call is the next revision.
type story struct {
	events []Event
	now    time.Time
}

func (s *story) add(e Event) *story {
	e.Revision, e.Budget = int64(len(s.events)+1), "b"
	s.events = append(s.events, e)
	return s
}

func (s *story) pod(name string, change func(*Pod)) *story {
	p := Pod{Name: name, UID: name, Available: true, Created: s.now}
	if change != nil {
		change(&p)
	}
	return s.add(Event{Pod: &p})
}

func (s *story) budget(allowed int, records ...string) *story {
	at := map[string]time.Time{}
	for _, r := range records {
		at[r] = s.now
	}
	return s.add(Event{Status: &Status{Allowed: allowed, Recorded: at}})
}

func going(p *Pod) { p.Available = false }
func gone(p *Pod)  { p.Gone = true }

// three pods, of which one may go.
func started() *story {
	s := &story{now: time.Unix(1000, 0)}
	return s.pod("a", nil).pod("b", nil).pod("c", nil).budget(1)
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name  string
		story *story
		want  []string
		spare int
	}{
		{"one goes with leave", started().budget(0, "a").pod("a", going).pod("a", gone).pod("d", nil).budget(1), nil, 0},
		{"one goes without", started().pod("a", gone), []string{"pod a was disrupted without leave"}, 0},
		{"one is changed with leave", started().budget(0, "a").pod("a", func(p *Pod) { p.Spec = "new" }).budget(0, "a"), nil, 0},
		{"one is changed without", started().pod("a", func(p *Pod) { p.Spec = "new" }), []string{"pod a was disrupted without leave"}, 1},
		{"two have leave, and no pod went yet", started().budget(0, "a", "b"), []string{"1 pods are available and 2 have leave to go, want 2"}, 0},
		{"two go with leave", started().budget(0, "a").pod("a", gone).budget(0, "b").pod("b", gone),
			[]string{"1 pods are available and 1 have leave to go, want 2"}, 0},
		{"a status allows less than nothing", started().budget(-1, "a"), []string{"its status allows -1"}, 0},
		{"a record of an earlier pod of that name is no leave", func() *story {
			s := started()
			s.budget(0, "a").pod("a", gone)
			s.now = s.now.Add(time.Minute)
			later := func(p *Pod) { p.UID = "a2" }
			s.pod("a", later)
			s.now = s.now.Add(-time.Minute)
			s.budget(0, "a")
			s.now = s.now.Add(time.Minute)
			return s.pod("a", func(p *Pod) { later(p); going(p) })
		}(), []string{"pod a was disrupted without leave"}, 0},
		{"while the workload starts nothing is promised", (&story{}).budget(0).pod("a", nil).pod("a", gone), nil, -1},
		{"a pod that was never available may go", started().pod("d", going).pod("d", gone), nil, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Check(tc.story.events, map[string]int{"b": 2})
			var texts []string
			for _, v := range got.Violations {
				texts = append(texts, v.What)
			}
			if fmt.Sprint(texts) != fmt.Sprint(tc.want) || got.Spare != tc.spare {
				t.Errorf("got %s and %d to spare, want %s and %d", strings.Join(texts, "; "), got.Spare, tc.want, tc.spare)
			}
		})
	}
}

func TestEventsAreOrderedByRevision(t *testing.T) {
	s := started().budget(0, "a").pod("a", gone)
	n := len(s.events)
	s.events[n-1], s.events[n-2] = s.events[n-2], s.events[n-1] // heard of in another order
	s.events = append(s.events, Event{Revision: 99, Budget: "unknown", Pod: &Pod{}})
	if got := Check(s.events, map[string]int{"b": 2}); len(got.Violations) > 0 || got.Disruptions != 1 || got.Pods != 4 || got.Statuses != 2 {
		t.Errorf("%+v", got)
	}
}
