// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// of follows snapshots one by one, a second each, and the last indefinitely.
func of(timeout time.Duration, all ...snapshot) *rollout {
	now := noon()
	r := &rollout{about: web(), now: func() time.Time { return now }}
	if timeout > 0 {
		r.timeout, r.until = timeout, now.Add(timeout)
	}
	r.source = func() (snapshot, error) {
		now = now.Add(time.Second)
		s := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		return s, nil
	}
	return r
}

func TestWhenItEnds(t *testing.T) {
	set := func(updated, done int, change func(*kruise.CloneSet)) snapshot {
		return snapshotOf(webSet(updated, done, change))
	}
	gone := set(4, 2, nil)
	gone.gone = true
	tests := []struct {
		name  string
		all   []snapshot
		limit time.Duration
		looks int
		err   string
	}{
		{"when all pods are updated and available, and stay so", []snapshot{set(4, 2, nil), set(10, 10, nil)}, 0, 4, ""},
		{"not when it is complete only for a moment", []snapshot{set(10, 10, nil), set(4, 2, nil), set(10, 10, nil)}, 0, 5, ""},
		{"not while the manager has not seen the change", []snapshot{
			set(10, 10, func(s *kruise.CloneSet) { s.Status.ObservedGeneration = 1 }), set(10, 10, nil),
		}, 0, 4, ""},
		{"not while there are more pods than are wanted", []snapshot{
			set(10, 10, func(s *kruise.CloneSet) { s.Status.Replicas = 12 }), set(10, 10, nil),
		}, 0, 4, ""},
		{"when as many are updated as the partition allows", []snapshot{set(4, 4, func(s *kruise.CloneSet) { s.Status.ExpectedUpdatedReplicas = 4 })}, 0, 3, ""},
		{"when it is paused it does not end", []snapshot{set(4, 2, nil)}, 5 * time.Second, 5, "the rollout of CloneSet shop/web was not complete after 5s: 4 of 10 pods are updated, 2 of them available"},
		{"with an error at its deadline", []snapshot{set(4, 2, exceeded)}, 0, 1, "has timed out progressing (4 of 10"},
		{"not at the deadline of the rollout before", []snapshot{
			set(4, 2, func(s *kruise.CloneSet) { exceeded(s); s.Status.ObservedGeneration = 1 }), set(10, 10, nil),
		}, 0, 4, ""},
		{"with an error when the CloneSet is deleted", []snapshot{gone}, 0, 1, "CloneSet shop/web was deleted"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := of(tc.limit, tc.all...)
			looks := 0
			for {
				_, last, err := r.nextSnapshot()
				looks++
				if last {
					if looks != tc.looks || (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
						t.Errorf("after %d looks: %v", looks, err)
					}
					return
				}
				if looks > 20 {
					t.Fatal("it does not end")
				}
			}
		})
	}
}

func TestPlain(t *testing.T) {
	var out bytes.Buffer
	held := halfway()
	held.silence = errors.New("lost\nthe way")
	unseen := snapshotOf(webSet(0, 0, func(s *kruise.CloneSet) { s.Status.ObservedGeneration = 1 }))
	failed := halfway()
	failed.events = append(failed.events, event{at: noon().Add(time.Minute), warning: true, reason: "FailedCreate", message: "no quota", count: 1})
	if err := printPlain(t.Context(), of(0, unseen, halfway(), halfway(), held, failed, onNodes(), complete()), &out, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	want := `12:00:01  the manager has not seen the change yet
12:00:02  4 of 10 pods are updated, 2 of them available; 10 of 10 pods, 8 available; 5 held (OtherZoneFirst), 2 updating (NotAvailable), 1 waiting (MaxUnavailableReached)
12:00:02  OtherZoneFirst: CloneSet shop/web updates one zone at a time, so pods in zone b wait. (rule one-zone.other)
12:00:04  warning: lost the way
12:00:05  event FailedCreate: no quota
12:00:06  4 of 10 pods are updated, 2 of them available; 10 of 10 pods, 8 available
12:00:06  node node-1: pod web-1 is on its way
12:00:07  10 of 10 pods are updated, 10 of them available; 10 of 10 pods, 10 available
12:00:09  the rollout is complete
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := printPlain(ctx, of(0, halfway()), io.Discard, time.Hour); !errors.Is(err, errInterrupted) {
		t.Errorf("when interrupted: %v", err)
	}
}

func TestTheLiveViewAsAProgram(t *testing.T) {
	var out bytes.Buffer
	m := newModel(of(0, halfway(), complete()), lipgloss.NewRenderer(&out))
	last, err := tea.NewProgram(m, tea.WithInput(nil), tea.WithOutput(&out), tea.WithContext(t.Context())).Run()
	if err != nil {
		t.Fatal(err)
	}
	if m := last.(model); m.err != nil || !m.seen.last || !strings.Contains(m.View(), "10/10 100%") {
		t.Errorf("it ended with %v and\n%s", m.err, m.View())
	}
}

func TestKeys(t *testing.T) {
	for key, want := range map[string]error{"q": nil, "esc": nil, "ctrl+c": errInterrupted} {
		t.Run(key, func(t *testing.T) {
			msg := map[string]tea.KeyMsg{"q": {Type: tea.KeyRunes, Runes: []rune("q")}, "esc": {Type: tea.KeyEsc}, "ctrl+c": {Type: tea.KeyCtrlC}}[key]
			next, cmd := newModel(of(0, halfway()), lipgloss.NewRenderer(io.Discard)).Update(msg)
			if m := next.(model); !errors.Is(m.err, want) || cmd == nil {
				t.Errorf("got %v", m.err)
			}
		})
	}
	m, cmd := newModel(of(0, halfway()), lipgloss.NewRenderer(io.Discard)).Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("x")})
	if cmd != nil || m.View() != "" {
		t.Error("another key does something")
	}
	m, _ = m.Update(tea.WindowSizeMsg{Width: 40, Height: 14})
	m, cmd = m.Update(seen{snapshot: halfway(), at: noon()})
	if n := strings.Count(m.View(), "\n"); n != 13 || cmd == nil {
		t.Errorf("%d lines\n%s", n, m.View())
	}
}

func TestRevisionsAreCounted(t *testing.T) {
	pod := func(revision string, ready corev1.ConditionStatus, owner string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"controller-revision-hash": revision}}}
		p.OwnerReferences = []metav1.OwnerReference{{UID: "other"}, {UID: "u", Controller: ptr.To(owner == "u")}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled}, {Type: corev1.PodReady, Status: ready}}
		return p
	}
	gone := pod("web-b", corev1.ConditionTrue, "u")
	gone.DeletionTimestamp = ptr.To(metav1.Now())
	bare := pod("web-a", corev1.ConditionTrue, "u")
	bare.Status.Conditions = nil
	pods := []*corev1.Pod{
		pod("web-z", corev1.ConditionTrue, "u"), pod("web-b", corev1.ConditionTrue, "u"), pod("web-b", corev1.ConditionFalse, "u"),
		pod("web-b", corev1.ConditionTrue, ""), gone, bare,
	}
	want := []revision{{"web-a", 1, 0, false}, {"web-z", 1, 1, false}, {"web-b", 2, 1, true}}
	if diff := cmp.Diff(want, revisionsOf(pods, "u", "web-b"), cmp.AllowUnexported(revision{})); diff != "" {
		t.Error(diff)
	}
	short := revisionsOf([]*corev1.Pod{pod("5d8f", corev1.ConditionTrue, "u")}, "u", "web-5d8f")
	if len(short) != 1 || !short[0].newest {
		t.Errorf("a label with the hash alone: %v", short)
	}
}

func TestEventsAreGrouped(t *testing.T) {
	at := func(s int64) metav1.Time { return metav1.Unix(s, 0) }
	ours := corev1.ObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "StatefulSet", Name: "web"}
	got := eventsOf([]*corev1.Event{
		{InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}, Reason: "C", LastTimestamp: at(9)},
		{InvolvedObject: ours, Reason: "A", Type: "Normal", Message: "first", LastTimestamp: at(1), Count: 3},
		{InvolvedObject: ours, Reason: "B", Type: "Warning", Message: "(combined from similar events): b", EventTime: metav1.NewMicroTime(time.Unix(5, 0))},
		{InvolvedObject: ours, Reason: "A", Type: "Normal", Message: "last", ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(2)}},
	}, "apps.kruise.io")
	want := []event{{time.Unix(5, 0), true, "B", "b", 1}, {time.Unix(2, 0), false, "A", "last", 4}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(event{})); diff != "" {
		t.Error(diff)
	}
}
