// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

func TestRunsAreComparedWithTheirYardstick(t *testing.T) {
	phases := func(seconds float64) []Phase {
		return []Phase{{Name: "create", Seconds: seconds}, {Name: "inPlace", Seconds: seconds}}
	}
	d := &Document{}
	d.Add(Run{Number: 1, Workload: "StatefulSet", Phases: phases(4)[:1]})
	d.Add(Run{Number: 1, Workload: "Advanced StatefulSet", Yardstick: "StatefulSet", Phases: phases(6)})
	d.Add(Run{Number: 2, Workload: "Advanced StatefulSet", Yardstick: "StatefulSet", Phases: phases(6)})
	d.Add(Run{Number: 1, DelaySeconds: 0.1, Workload: "Advanced StatefulSet", Yardstick: "StatefulSet", Phases: phases(6)})
	if got := d.Runs[1].Phases[0].OfYardstick; got == nil || *got != 1.5 {
		t.Errorf("create: got %v", got)
	}
	for name, p := range map[string]Phase{
		"the yardstick has no such phase": d.Runs[1].Phases[1],
		"it ran another time":             d.Runs[2].Phases[0],
		"it ran with another delay":       d.Runs[3].Phases[0],
		"it is the yardstick":             d.Runs[0].Phases[0],
	} {
		if p.OfYardstick != nil {
			t.Errorf("%s: got %v", name, *p.OfYardstick)
		}
	}
}

func TestTheTableComesAsMarkdownToo(t *testing.T) {
	ratio, reconciles := 1.234, 7.0
	phase := Phase{Name: "create", Seconds: 5, OfYardstick: &ratio, Usage: Usage{
		Reconciles: &reconciles,
		Writes:     &Writes{PerPod: 3.1, OnPodsEach: 3, OnStatus: 9, DryRuns: 2, Failed: 1, CreateMillis: &Spread{Median: 12, P99: 40}},
		Process:    &Process{CPUSeconds: 1.5, ResidentBytesMax: 100 << 20},
	}}
	idle := Phase{Name: "idle", Seconds: 60, Usage: Usage{Heartbeats: &Heartbeats{Statuses: 2, Leases: 3}, Controllers: map[string]float64{"a": 1, "b": 2}}}
	d := Document{Cluster: Cluster{Nodes: 4}, Runs: []Run{{Number: 1, Workload: "CloneSet", Phases: []Phase{phase, idle}}}}
	scale := Document{Scale: &Scale{Workloads: 3, Pods: 20, Phases: []ScalePhase{{Name: "create", First: Spread{Median: 1, Max: 2}, Complete: Spread{Min: 3, Median: 4, Max: 5}}}}}
	for want, of := range map[string]Document{
		"| 0.0 | CloneSet | create | 5.0 | 1.23 | 3.10 | 3.00 | 9 | 2 | 1.5 | 100 | 7 |":                  d,
		"| 0.0 | CloneSet | idle | 60.0 | - | - | - | - | - | - | - | - |":                                d,
		"CloneSet, idle for 60 s on 4 nodes: 2 heartbeats of nodes and 3 of leases. Reconciles: b 2, a 1": d,
		"| 3 x 20 pods | first, median / last, s |":                                                       scale,
		"| create | 1.0 / 2.0 | 3.0 / 4.0 / 5.0 | - | - | - | - | - | - | - |":                            scale,
	} {
		var out strings.Builder
		if err := of.Table(&out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in it, %v:\n%s", want, err, out.String())
		}
	}
}
