// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/rollout"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

func TestAStreamSendsWhatHasChanged(t *testing.T) {
	w := httptest.NewRecorder()
	s := &rowStream{to: w, control: http.NewResponseController(w), sent: map[string]uint64{}, seed: maphash.MakeSeed()}
	many := func(n int) (out []row) {
		for i := range n {
			out = append(out, row{fmt.Sprint("r", i), map[string]int{"n": i}})
		}
		return out
	}
	browser := map[string]json.RawMessage{}
	steps := []struct {
		rows          []row
		messages, set int // how many messages, and rows in them
	}{
		{nil, 1, 0}, // the browser has to know that there are none
		{many(3), 1, 3},
		{many(3), 0, 0},
		{append(many(2), row{"r2", map[string]int{"n": 7}}), 1, 1},
		{many(1), 1, 0},
		{many(2*maxRows + 10), 3, 2*maxRows + 9},
		{nil, 1, 0},
	}
	for i, step := range steps {
		w.Body.Reset()
		if err := s.sendRows(step.rows); err != nil {
			t.Fatal(err)
		}
		messages, set := 0, 0
		for text := range strings.SplitSeq(w.Body.String(), "\n\n") {
			if text == "" {
				continue
			}
			var m message
			if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "data: ")), &m); err != nil {
				t.Fatal(err)
			}
			messages, set = messages+1, set+len(m.Set)
			maps.Copy(browser, m.Set)
			for _, id := range m.Remove {
				delete(browser, id)
			}
		}
		if messages != step.messages && !(i == 0 && messages == 1) || set != step.set {
			t.Errorf("step %d sends %d rows in %d messages, want %d in %d", i, set, messages, step.set, step.messages)
		}
		var want []string
		for _, r := range step.rows {
			want = append(want, r.ID)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(browser))); diff != "" {
			t.Errorf("after step %d the browser has other rows (-want +got):\n%s", i, diff)
		}
	}
}

func TestPhases(t *testing.T) {
	complete := kinds.View{Wanted: 3, Target: 3, Observed: true, Pods: 3, Available: 3, Updated: 3, Done: 3}
	halfway := complete
	halfway.Updated, halfway.Done = 1, 1
	held := halfway
	held.Conditions = []kinds.Condition{{Type: kruise.UpdateHeld, Status: corev1.ConditionTrue}}
	with := func(v kinds.View, change func(*rollout.State)) rollout.State {
		s := rollout.State{View: v}
		if change != nil {
			change(&s)
		}
		return s
	}
	tests := []struct {
		name  string
		state rollout.State
		want  phase
	}{
		{"complete", with(complete, nil), phaseComplete},
		{"halfway", with(halfway, nil), phaseUpdating},
		{"halfway, not observed", with(halfway, func(s *rollout.State) { s.Observed = false }), phaseUnseen},
		{"held", with(held, func(s *rollout.State) { s.Notes = []string{"held: freeze"} }), phaseHeld},
		{"held and paused", with(held, func(s *rollout.State) { s.Notes, s.Paused = []string{"paused", "held: freeze"}, true }), phaseHeld},
		{"held, and pods cannot be created", with(held, func(s *rollout.State) { s.Notes = []string{"held: freeze", "FailedScale: quota"} }), phaseFailing},
		{"paused", with(halfway, func(s *rollout.State) { s.Notes, s.Paused = []string{"paused"}, true }), phasePaused},
		{"paused and complete", with(complete, func(s *rollout.State) { s.Notes, s.Paused = []string{"paused"}, true }), phaseComplete},
		{"complete, and pods cannot be created", with(complete, func(s *rollout.State) { s.Notes = []string{"FailedScale: quota"} }), phaseFailing},
		{"a policy holds the allocation of subsets", with(held, func(s *rollout.State) {
			s.Conditions = []kinds.Condition{{Type: string(kruise.UnitedDeploymentAllocationHeld), Status: corev1.ConditionTrue}}
			s.Notes = []string{"AllocationHeld: freeze"}
		}), phaseHeld},
		{"late", with(halfway, func(s *rollout.State) { s.Deadline = "too late" }), phaseLate},
		{"complete after its deadline", with(complete, func(s *rollout.State) { s.Deadline = "too late" }), phaseComplete},
		{"OnDelete", with(halfway, func(s *rollout.State) { s.Endless = "a client deletes pods" }), phaseManual},
	}
	for _, tc := range tests {
		if got := phaseOf(tc.state); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func newPod(name, revision string, created time.Time, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{"controller-revision-hash": revision, "app": "web"}, CreationTimestamp: metav1.NewTime(created),
			OwnerReferences: []metav1.OwnerReference{{Kind: "CloneSet", Name: "web", UID: "web", Controller: ptr.To(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created)}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func TestPodsOfARollout(t *testing.T) {
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	inPlace := func(at time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: fmt.Sprintf(`{"revision":"web-new","updateTimestamp":%q}`, at.Format(time.RFC3339))}
		}
	}
	pods := []*corev1.Pod{
		newPod("old-b", "web-old", noon), newPod("old-a", "web-old", noon),
		newPod("second", "web-new", noon.Add(time.Minute)),
		newPod("first-b", "web-new", noon.Add(3*time.Second)), newPod("first-a", "web-new", noon.Add(-time.Hour), inPlace(noon)),
		newPod("damaged", "web-new", noon.Add(2*time.Minute), func(p *corev1.Pod) {
			p.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: "{"}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
			p.Status.Conditions = nil
		}),
		newPod("going", "web-old", noon, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }),
		newPod("of-another", "web-new", noon, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }),
		newPod("of-none", "web-new", noon, func(p *corev1.Pod) { p.OwnerReferences = nil }),
	}
	held := func(name string) explain.Answer {
		return explain.Answer{
			Subject: decision.Subject{Kind: "Pod", Namespace: "shop", Name: name}, Verdict: explain.Held, Reason: "ChangeFreeze", Message: "A freeze.",
			Rule: "freeze", From: "web-old", To: "web-new", Until: "2026-11-30T00:00:00Z",
		}
	}
	reply := &explain.Reply{Pods: []explain.Answer{held("old-b"), held("old-a"), held("going")}}
	all := newPodsOfRollout(workloadRow{Kind: "CloneSet", Name: "web", Revision: "web-new"}, reply)
	all.zones["n1"], all.owners["web"] = "a", true
	var got []string
	for _, r := range all.collectRows(pods) {
		got = append(got, fmt.Sprintf("%s wave %d %s %s zone %s %s", r.Name, r.Wave, r.State, r.Rule, r.Zone, r.Problem))
	}
	want := []string{
		"first-a wave 1 UpToDate  zone a ", "first-b wave 1 UpToDate  zone a ", "second wave 2 UpToDate  zone a ", "damaged wave 3 NotReady  zone a ImagePullBackOff",
		"old-b wave 0 Held freeze zone a ", "old-a wave 0 Held freeze zone a ", "going wave 0 Deleting freeze zone a ",
	}
	// A pod that is being deleted is not explained, and comes where its position is.
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other rows (-want +got):\n%s", diff)
	}
}

func TestLabelsOfPodsAreBounded(t *testing.T) {
	labels := map[string]string{"long": strings.Repeat("x", maxLabelBytes), "controller-revision-hash": "r", kruise.CloneSetInstanceIDKey: "abcde"}
	for i := range 3 * maxLabels {
		labels[fmt.Sprint("k", i)] = "v"
	}
	got := boundedLabels(labels)
	if len(got) != maxLabels || got["long"] != "" || got["controller-revision-hash"] != "" || got[kruise.CloneSetInstanceIDKey] != "" {
		t.Errorf("got %v", got)
	}
}

func TestReasonsOfAnyOutput(t *testing.T) {
	tests := []struct {
		name   string
		output any
		want   []string
	}{
		{"holds", &points.PlanOutput{Holds: []decision.Hold{{Rule: "freeze", Reason: "ChangeFreeze", Message: "A freeze.", Until: "2026-11-30T00:00:00Z"}}}, []string{"freeze ChangeFreeze: A freeze. 2026-11-30T00:00:00Z"}},
		{"of a record that was read", map[string]any{"denials": []any{map[string]any{"reason": "NoLatest", "message": "No latest."}}, "n": 1}, []string{" NoLatest: No latest. "}},
		{"lists of something else", map[string]any{"order": []any{map[string]any{"name": "web-1"}}, "names": []any{"a"}}, nil},
		{"no object", []any{"x"}, nil},
		{"none", nil, nil},
	}
	for _, tc := range tests {
		var got []string
		for _, r := range reasonsOf(tc.output) {
			got = append(got, fmt.Sprintf("%s %s: %s %s", r.Rule, r.Reason, r.Message, r.Until))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	many := map[string]any{"holds": slices.Repeat([]any{map[string]any{"reason": "R", "message": "m"}}, 100)}
	if got := reasonsOf(many); len(got) != maxReasons {
		t.Errorf("a decision has %d reasons", len(got))
	}
}

func TestDecisionsAreKeptOnceAndTheLatestOnly(t *testing.T) {
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	l := &decisionLog{feed: &changeFeed{}}
	record := func(i int) decision.Record {
		return decision.Record{ID: uint64(i), Origin: "m", Time: noon.Add(time.Duration(i) * time.Millisecond), Point: "rollout/plan"}
	}
	var records []decision.Record
	for i := range maxDecisions + 10 {
		records = append(records, record(i))
	}
	l.addRecords(records, noon)
	l.addRecords(records[maxDecisions:], noon)
	if len(l.rows) != maxDecisions {
		t.Fatalf("%d decisions are kept", len(l.rows))
	}
	first, last := l.rows[0].Data.(decisionRow), l.rows[maxDecisions-1].Data.(decisionRow)
	if first.At != record(maxDecisions+9).Time.UnixMilli() || last.At != record(10).Time.UnixMilli() {
		t.Errorf("kept are those from %d to %d", last.At, first.At)
	}
	l.addRecords(nil, noon.Add(2*firstDecisions))
	if len(l.rows) != 0 {
		t.Errorf("%d decisions are kept that are too old", len(l.rows))
	}
	l.problems = []error{errors.New("the managers\n\x1b[31m are away")}
	rows := l.collectRows()
	if problem := rows[len(rows)-1].Data.(problemRow); strings.ContainsAny(problem.Message, "\n\x1b") {
		t.Errorf("the problem is %q", problem.Message)
	}
}

// incompleteManagers answer in part: one of them is away.
type incompleteManagers struct {
	stubManagers
	asked    []time.Duration
	warnings []error
}

func (m *incompleteManagers) FetchDecisions(_ context.Context, d managers.Decisions) ([]decision.Record, []error, error) {
	m.asked = append(m.asked, d.Since)
	return nil, m.warnings, nil
}

func TestDecisionsThatAManagerDidNotSendAreAskedForAgain(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	m := &incompleteManagers{}
	l := &decisionLog{asker: m, now: func() time.Time { return now }, feed: &changeFeed{}}
	for _, step := range []struct {
		after    time.Duration
		warnings []error
		want     time.Duration
	}{
		{0, nil, firstDecisions},
		{5 * time.Second, nil, 5*time.Second + overlap},
		{5 * time.Second, []error{errors.New("manager-1 is away")}, 5*time.Second + overlap},
		{5 * time.Second, nil, 10*time.Second + overlap},
		{time.Hour, nil, firstDecisions},
		{-time.Minute, nil, overlap}, // the clock was set back
	} {
		now = now.Add(step.after)
		m.warnings = step.warnings
		l.askOnce(t.Context())
		if got := m.asked[len(m.asked)-1]; got != step.want {
			t.Errorf("after %s it asks for %s, want %s", step.after, got, step.want)
		}
	}
}

func TestStatesOfPodsThatAreNotExplained(t *testing.T) {
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	later := noon.Add(time.Hour)
	notReady := func(p *corev1.Pod) { p.Status.Conditions = nil }
	ofSubset := func(p *corev1.Pod) {
		p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "web-zone-a", "subset"
		p.Labels[kruise.ControllerRevisionHashKey] = "ud-new"
	}
	injected := func(p *corev1.Pod) {
		p.Annotations = map[string]string{
			kruise.SidecarSetInjectedListKey: "web,other",
			kruise.SidecarSetHashKey:         fmt.Sprintf(`{"web":{"updateTimestamp":%q,"hash":"h","sidecarSetName":"web"}}`, later.Format(time.RFC3339)),
		}
	}
	tests := []struct {
		name, kind, newest string
		pod                *corev1.Pod
		state              string
		updated            time.Time
	}{
		{"of the newest revision", "StatefulSet", "web-new", newPod("p", "web-new", noon), "UpToDate", noon},
		{"of an older revision", "StatefulSet", "web-new", newPod("p", "web-old", noon), "Outdated", noon},
		{"not ready", "StatefulSet", "web-new", newPod("p", "web-new", noon, notReady), "NotReady", noon},
		{"the newest revision is not known", "Deployment", "", newPod("p", "x", noon), "Ready", noon},
		{"only the hash is in the label", "DaemonSet", "web-5d4f", newPod("p", "5d4f", noon), "UpToDate", noon},
		{"of a subset", "UnitedDeployment", "ud-new", newPod("p", "cloneset-rev", noon, ofSubset), "UpToDate", noon},
		{"of a subset, before the update", "UnitedDeployment", "ud-newer", newPod("p", "cloneset-rev", noon, ofSubset), "Outdated", noon},
		{"with a sidecar that was updated later", "SidecarSet", "web-set-2", newPod("p", "of-its-workload", noon, injected), "Outdated", later},
	}
	for _, tc := range tests {
		all := newPodsOfRollout(workloadRow{Kind: tc.kind, Name: "web", Revision: tc.newest}, nil)
		all.owners["web"] = true
		rows := all.collectRows([]*corev1.Pod{tc.pod})
		if len(rows) != 1 || rows[0].State != tc.state || rows[0].UpdatedAt != tc.updated.UnixMilli() {
			t.Errorf("%s: got %+v, want state %s", tc.name, rows, tc.state)
		}
	}
}
