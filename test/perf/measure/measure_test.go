// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/test/cluster/audit"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		name string
		all  []float64
		want report.Spread
	}{
		{"nothing is all zero", nil, report.Spread{}},
		{"one is everything", []float64{3}, report.Spread{Min: 3, Median: 3, P99: 3, Max: 3}},
		{"the lower of two is the median", []float64{4, 2}, report.Spread{Min: 2, Median: 2, P99: 4, Max: 4}},
		{"of a hundred the last is beyond the 99th percentile", upTo(100), report.Spread{Min: 1, Median: 50, P99: 99, Max: 100}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Spread(test.all); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func upTo(n int) (all []float64) {
	for i := n; i > 0; i-- {
		all = append(all, float64(i))
	}
	return all
}

func TestWritesArePerPod(t *testing.T) {
	got := summary([]audit.Count{
		{User: "m", Verb: "patch", Resource: "pods/status", Writes: 20, Failed: 1},
		{User: "m", Verb: "create", Resource: "pods", Writes: 10, DryRuns: 4},
		{User: "m", Verb: "patch", Resource: "clonesets/status", Writes: 5},
	}, workload.CloneSet(), 10)
	want := &report.Writes{
		Total: 35, PerPod: 3.5, OnPods: 30, OnPodsEach: 3, OnStatus: 5, Failed: 1, DryRuns: 4,
		Requests: []report.Request{
			{User: "m", Verb: "patch", Resource: "pods/status", Writes: 20, Failed: 1, PerPod: 2},
			{User: "m", Verb: "create", Resource: "pods", Writes: 10, DryRuns: 4, PerPod: 1},
			{User: "m", Verb: "patch", Resource: "clonesets/status", Writes: 5, PerPod: 0.5},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMetricsAreAddedUp(t *testing.T) {
	const text = `# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="cloneset-controller",result="success"} 40
controller_runtime_reconcile_total{controller="cloneset-controller",result="requeue_after"} 2
controller_runtime_reconcile_total{controller="policybundle-controller",result="success"} 7
`
	got := map[string]float64{}
	for range 2 { // managers
		if err := sum(strings.NewReader(text), "controller_runtime_reconcile_total", "controller", got); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]float64{"cloneset-controller": 84, "policybundle-controller": 14}, got); diff != "" {
		t.Error(diff)
	}
	before := map[string]float64{"cloneset-controller": 80, "policybundle-controller": 14}
	if diff := cmp.Diff(map[string]float64{"cloneset-controller": 4}, growth(before, got)); diff != "" {
		t.Error(diff)
	}
}

func TestMediansAreOfOnePhaseOfOneWorkload(t *testing.T) {
	phase := func(name string, seconds, cpu float64) report.Phase {
		return report.Phase{Name: name, Seconds: seconds, Usage: report.Usage{Process: &report.Process{CPUSeconds: cpu}}}
	}
	got := Medians([]report.Run{
		{Workload: "A", Phases: []report.Phase{phase("create", 1, 10), phase("delete", 5, 50)}},
		{Workload: "B", Phases: []report.Phase{phase("create", 7, 70)}},
		{Workload: "A", Phases: []report.Phase{phase("create", 3, 30)}},
	})
	of := func(w, p string, runs int, s report.Spread, cpu float64) report.Median {
		return report.Median{Workload: w, Phase: p, Runs: runs, Seconds: s, CPUSeconds: &cpu}
	}
	want := []report.Median{
		of("A", "create", 2, report.Spread{Min: 1, Median: 1, P99: 3, Max: 3}, 10),
		of("A", "delete", 1, report.Spread{Min: 5, Median: 5, P99: 5, Max: 5}, 50),
		of("B", "create", 1, report.Spread{Min: 7, Median: 7, P99: 7, Max: 7}, 70),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
