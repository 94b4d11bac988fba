// SPDX-License-Identifier: Apache-2.0

// Package history checks what happened to pods and to their budgets against what
// budgets promise. Events of both come from the API server, whose revisions put
// them into one order: what is checked is the order in which things were stored,
// not the one in which a client received them.
package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Event is a version of a pod or of a budget. One of the two is set.
type Event struct {
	// Revision is the resource version as a number.
	Revision int64
	// Budget names the budget that the version is of, or that the pod belongs to.
	Budget string
	Pod    *Pod
	Status *Status
}

// Pod is what a version of a pod says.
type Pod struct {
	Name, UID string
	Created   time.Time
	// Available is true when it is ready, not on its way out, and not labelled as
	// unavailable.
	Available bool
	// Gone is true when it is deleted.
	Gone bool
	// Spec is what a resize or an update changes.
	Spec string
	// Why says why it is not available, for people.
	Why string
}

// Status is that of a budget.
type Status struct {
	Allowed  int
	Current  int
	Recorded map[string]time.Time
}

// Violation is a promise that was broken.
type Violation struct {
	Revision int64
	Budget   string
	What     string
	// Before are the last versions of the budget and its pods until then.
	Before []string
}

func (v Violation) String() string {
	return fmt.Sprintf("revision %d, budget %s: %s, after\n  %s", v.Revision, v.Budget, v.What, strings.Join(v.Before, "\n  "))
}

// told is how many versions before a violation the report lists.
const told = 40

func (e Event) String() string {
	if s := e.Status; s != nil {
		var records []string
		for _, name := range slices.Sorted(maps.Keys(s.Recorded)) {
			records = append(records, name+"@"+s.Recorded[name].UTC().Format("04:05"))
		}
		return fmt.Sprintf("%d allows %d, current %d, recorded %v", e.Revision, s.Allowed, s.Current, records)
	}
	return fmt.Sprintf("%d pod %s available=%t gone=%t spec=%q created %s %s", e.Revision, e.Pod.Name, e.Pod.Available, e.Pod.Gone, e.Pod.Spec, e.Pod.Created.UTC().Format("04:05"), e.Pod.Why)
}

// Summary is what was checked.
type Summary struct {
	Pods, Statuses int // versions
	Budgets        int
	// Disruptions are pods that became unavailable, or were changed, after they had
	// been available.
	Disruptions int
	// Spare is the least number of pods that were available beyond what a budget requires.
	Spare int
	// Full counts how often a budget was used up to the last pod.
	Full       int
	Violations []Violation
}

// Check replays events in the order of their revisions. Want is how many pods of
// each budget have to be available; a budget is held to it from when that many
// were for the first time.
//
// It checks that, at every revision, enough pods are available even if all those
// go that have leave to; that no pod is disrupted without having been recorded
// before; and that no status allows less than nothing.
func Check(events []Event, want map[string]int) Summary {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Revision, b.Revision) })
	s := Summary{Budgets: len(want), Spare: -1}
	states := map[string]*state{}
	for name, n := range want {
		states[name] = &state{want: n, pods: map[string]Pod{}}
	}
	for _, e := range events {
		b := states[e.Budget]
		if b == nil {
			continue
		}
		report := func(format string, args ...any) {
			s.Violations = append(s.Violations, Violation{e.Revision, e.Budget, fmt.Sprintf(format, args...), slices.Clone(b.before)})
		}
		if b.before = append(b.before, e.String()); len(b.before) > told {
			b.before = b.before[1:]
		}
		if e.Status != nil {
			s.Statuses++
			b.status = *e.Status
			if e.Status.Allowed < 0 {
				report("its status allows %d", e.Status.Allowed)
			}
		} else {
			s.Pods++
			if b.see(*e.Pod, report) {
				s.Disruptions++
			}
		}
		b.judge(&s, report)
	}
	return s
}

// state is a budget at a revision.
type state struct {
	want   int
	armed  bool
	pods   map[string]Pod // by UID
	status Status
	broken bool
	before []string
}

// see takes a new version of a pod, and says whether it is a disruption.
func (b *state) see(p Pod, report func(string, ...any)) bool {
	old, known := b.pods[p.UID]
	if p.Gone {
		delete(b.pods, p.UID)
		p.Available = false
	} else {
		b.pods[p.UID] = p
	}
	disrupted := known && old.Available && (!p.Available || p.Spec != old.Spec)
	if disrupted && b.armed && !b.recorded(old) {
		report("pod %s was disrupted without leave", p.Name)
	}
	return disrupted
}

// recorded says whether a pod has leave to go. A record that is older than the
// pod is of another one of that name; times have seconds only.
func (b *state) recorded(p Pod) bool {
	at, ok := b.status.Recorded[p.Name]
	return ok && !at.Before(p.Created)
}

func (b *state) judge(s *Summary, report func(string, ...any)) {
	available, leaving := 0, 0
	for _, p := range b.pods {
		switch {
		case !p.Available:
		case b.recorded(p):
			leaving++
		default:
			available++
		}
	}
	if !b.armed {
		b.armed = available >= b.want && b.status.Recorded != nil
		return
	}
	spare := available - b.want
	if s.Spare < 0 || spare < s.Spare {
		s.Spare = max(spare, 0)
	}
	if spare == 0 {
		s.Full++
	}
	if spare < 0 && !b.broken {
		report("%d pods are available and %d have leave to go, want %d", available, leaving, b.want)
	}
	b.broken = spare < 0 // told once, until it is well again
}
