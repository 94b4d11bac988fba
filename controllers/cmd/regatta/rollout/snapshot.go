// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
)

// snapshot is all that is known of a rollout at a time. It is not changed.
type snapshot struct {
	about target.Target
	kind  kinds.Workload
	// state is the state in the workload's spec and status; nil if it is not known.
	state     *kinds.View
	revisions []revision
	events    []event
	// answer is the last answer of the manager; silence is why there is no newer one.
	answer  *explain.Answer
	silence error
	// blind is why something cannot be watched, such as for lack of a permission.
	blind error
	// gone is true when the workload was deleted.
	gone bool
}

// revision counts the pods of a revision.
type revision struct {
	name        string
	pods, ready int
	newest      bool
}

// revisionsOf counts the pods that a workload owns, the newest revision last.
func revisionsOf(pods []*corev1.Pod, owner types.UID, newest string) []revision {
	counted := map[string]*revision{}
	for _, p := range pods {
		controller := metav1.GetControllerOfNoCopy(p)
		if controller == nil || controller.UID != owner || p.DeletionTimestamp != nil {
			continue
		}
		name := p.Labels["controller-revision-hash"]
		r := counted[name]
		if r == nil {
			// With a feature gate on, the label of pods has only the hash.
			r = &revision{name: joinLines(name), newest: name == newest || strings.HasSuffix(newest, "-"+name)}
			counted[name] = r
		}
		r.pods++
		if availability.HasReadyCondition(p) {
			r.ready++
		}
	}
	out := make([]revision, 0, len(counted))
	for _, r := range counted {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b revision) int {
		if a.newest != b.newest {
			if a.newest {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.name, b.name)
	})
	return out
}

// event is the latest of the events with one reason.
type event struct {
	at      time.Time
	warning bool
	reason  string
	message string
	count   int
}

// eventsOf groups events by their reasons: a rollout of a thousand pods may have a thousand events of
// one reason. The latest come first. An object of another group may have the same kind and name, and
// no selector tells the two apart.
func eventsOf(all []*corev1.Event, group string) []event {
	byReason := map[string]*event{}
	for _, e := range all {
		if e.InvolvedObject.GroupVersionKind().Group != group {
			continue
		}
		at := TimeOfEvent(e)
		g := byReason[e.Reason]
		if g == nil {
			g = &event{reason: joinLines(e.Reason), warning: e.Type == corev1.EventTypeWarning}
			byReason[e.Reason] = g
		}
		g.count += max(int(e.Count), 1)
		if !at.Before(g.at) {
			g.at, g.message = at, joinLines(strings.TrimPrefix(e.Message, "(combined from similar events): "))
		}
	}
	out := make([]event, 0, len(byReason))
	for _, g := range byReason {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b event) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return cmp.Compare(a.reason, b.reason)
	})
	return out
}

// TimeOfEvent is when an event happened last, in whichever field its reporter has set.
func TimeOfEvent(e *corev1.Event) time.Time {
	for _, at := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return e.CreationTimestamp.Time
}
