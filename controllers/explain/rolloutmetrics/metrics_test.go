// SPDX-License-Identifier: Apache-2.0

package rolloutmetrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
)

// round is a round of a rollout.
type round struct {
	explain.Round
	progress explain.Progress
	verdicts map[explain.Verdict]int
	reasons  []explain.ReasonCount
}

func (r round) TallyPods() (map[explain.Verdict]int, []explain.ReasonCount) {
	return r.verdicts, r.reasons
}
func (r round) MeasureProgress() explain.Progress { return r.progress }
func (r round) CountBytes() int                   { return 1 }

// other is a round of a workload that has no rollout.
type other struct{ explain.Round }

func (other) CountBytes() int { return 1 }

func subject(kind, name, uid string) decision.Subject {
	return decision.Subject{Group: "apps.kruise.io", Kind: kind, Namespace: "shop", Name: name, UID: uid}
}

func newMetrics(t *testing.T) (*explain.Store, *prometheus.Registry) {
	t.Helper()
	store, registry := explain.NewStore(), prometheus.NewPedanticRegistry()
	if err := RegisterMetrics(registry, store); err != nil {
		t.Fatal(err)
	}
	return store, registry
}

func TestPodsAreCountedByVerdictAndByRule(t *testing.T) {
	store, registry := newMetrics(t)
	store.PutRound(subject("CloneSet", "web", "1"), round{
		verdicts: map[explain.Verdict]int{explain.Held: 5, explain.UpToDate: 2}, progress: explain.Progress{Moved: 3},
		reasons: []explain.ReasonCount{
			{Verdict: explain.Held, Rule: "freeze.closed", Reason: "A", Pods: 3},
			{Verdict: explain.Waiting, Rule: "walk", Pods: 9},
			{Verdict: explain.Held, Rule: "freeze.closed", Reason: "B", Pods: 1},
			{Verdict: explain.Held, Reason: "Strategy", Pods: 1},
		},
	})
	store.PutRound(subject("UnitedDeployment", "all", "2"), other{})
	store.PutRound(subject("CloneSet", "gone", "3"), round{verdicts: map[explain.Verdict]int{explain.Held: 1}})
	store.ForgetWorkload("3")
	want := `# HELP regatta_rollout_held_pods Pods of a workload whose update a rule holds, by the rule.
# TYPE regatta_rollout_held_pods gauge
regatta_rollout_held_pods{kind="CloneSet",name="web",namespace="shop",rule="freeze.closed"} 4
# HELP regatta_rollout_moved_pods_total Pods whose update was started.
# TYPE regatta_rollout_moved_pods_total counter
regatta_rollout_moved_pods_total{kind="CloneSet"} 3
# HELP regatta_rollout_pods Pods of a workload by what the last round decided about them. A SidecarSet has no namespace.
# TYPE regatta_rollout_pods gauge
regatta_rollout_pods{kind="CloneSet",name="web",namespace="shop",verdict="Deleting"} 0
regatta_rollout_pods{kind="CloneSet",name="web",namespace="shop",verdict="Held"} 5
regatta_rollout_pods{kind="CloneSet",name="web",namespace="shop",verdict="Hooked"} 0
regatta_rollout_pods{kind="CloneSet",name="web",namespace="shop",verdict="Moved"} 0
regatta_rollout_pods{kind="CloneSet",name="web",namespace="shop",verdict="UpToDate"} 2
regatta_rollout_pods{kind="CloneSet",name="web",namespace="shop",verdict="Updating"} 0
regatta_rollout_pods{kind="CloneSet",name="web",namespace="shop",verdict="Waiting"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// What policies call their rules does not decide how many values there are, nor how long they are.
func TestRulesOfPoliciesAreBounded(t *testing.T) {
	var reasons []explain.ReasonCount
	for i := range 1000 {
		reasons = append(reasons, explain.ReasonCount{Verdict: explain.Held, Rule: fmt.Sprintf("%d-%s\xff", i, strings.Repeat("x", 5000)), Pods: 1})
	}
	store, registry := newMetrics(t)
	store.PutRound(subject("CloneSet", "web", "1"), round{reasons: reasons})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	pods := 0.0
	for _, f := range families {
		if f.GetName() != "regatta_rollout_held_pods" {
			continue
		}
		if n := len(f.GetMetric()); n != maxRules+1 {
			t.Errorf("there are %d values, want %d", n, maxRules+1)
		}
		for _, m := range f.GetMetric() {
			pods += m.GetGauge().GetValue()
			for _, l := range m.GetLabel() {
				if len(l.GetValue()) > maxRuleBytes {
					t.Errorf("a label has %d bytes", len(l.GetValue()))
				}
			}
		}
	}
	if pods != 1000 {
		t.Errorf("%v pods are counted, want all 1000", pods)
	}
}

func TestRolloutsAreTimed(t *testing.T) {
	begin := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	at := func(minutes int, revision string, outdated int, complete bool) explain.Progress {
		return explain.Progress{At: begin.Add(time.Duration(minutes) * time.Minute), Revision: revision, Outdated: outdated, Complete: complete}
	}
	for _, tc := range []struct {
		name   string
		rounds []explain.Progress
		want   []float64 // minutes
	}{
		{"a rollout", []explain.Progress{at(0, "a", 0, true), at(1, "b", 3, false), at(4, "b", 0, false), at(6, "b", 0, true), at(9, "b", 0, true)}, []float64{5}},
		{"pods that are created", []explain.Progress{at(0, "a", 0, false), at(2, "a", 0, true)}, nil},
		{"a rollout that began before the first round", []explain.Progress{at(0, "b", 2, false), at(2, "b", 1, false), at(6, "b", 0, true)}, nil},
		{"the rollout after that one", []explain.Progress{at(0, "b", 2, false), at(6, "b", 0, true), at(7, "c", 2, false), at(8, "c", 0, true)}, []float64{1}},
		{"another revision before the end", []explain.Progress{at(0, "a", 0, true), at(1, "b", 3, false), at(5, "c", 3, false), at(7, "c", 0, true)}, []float64{2}},
		{"steps of a partition", []explain.Progress{at(0, "a", 0, true), at(1, "b", 1, false), at(2, "b", 0, true), at(60, "b", 2, false), at(63, "b", 0, true)}, []float64{1, 3}},
		{"one that is undone before any pod is updated", []explain.Progress{at(0, "a", 0, true), at(1, "b", 3, false), at(600, "a", 0, true)}, nil},
		{"a pod that is not available for a while", []explain.Progress{at(0, "a", 0, true), at(1, "a", 0, false), at(2, "a", 0, true)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store, registry := newMetrics(t)
			for _, p := range tc.rounds {
				store.PutRound(subject("CloneSet", "web", "1"), round{progress: p})
			}
			count, sum := readDurations(t, registry)
			want := 0.0
			for _, minutes := range tc.want {
				want += minutes * 60
			}
			if count != uint64(len(tc.want)) || sum != want {
				t.Errorf("there are %d durations of %v s together, want %v minutes", count, sum, tc.want)
			}
		})
	}
}

// A workload of the name of one that is gone begins anew.
func TestARecreatedWorkloadIsAnotherOne(t *testing.T) {
	store, registry := newMetrics(t)
	begin := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	store.PutRound(subject("CloneSet", "web", "1"), round{progress: explain.Progress{At: begin, Revision: "a", Complete: true}})
	store.PutRound(subject("CloneSet", "web", "2"), round{progress: explain.Progress{At: begin, Revision: "b", Outdated: 1}})
	store.PutRound(subject("CloneSet", "web", "1"), round{progress: explain.Progress{At: begin, Revision: "b", Outdated: 1}})
	store.PutRound(subject("CloneSet", "web", "1"), round{progress: explain.Progress{At: begin.Add(time.Hour), Revision: "b", Complete: true}})
	if count, _ := readDurations(t, registry); count != 0 {
		t.Errorf("%d rollouts are timed whose begin nobody saw", count)
	}
}

func readDurations(t *testing.T, registry prometheus.Gatherer) (count uint64, sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "regatta_rollout_duration_seconds" {
			for _, m := range f.GetMetric() {
				count += m.GetHistogram().GetSampleCount()
				sum += m.GetHistogram().GetSampleSum()
			}
		}
	}
	return count, sum
}
