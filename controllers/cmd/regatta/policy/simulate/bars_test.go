// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/simulate"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/engine/decision"
)

func TestBars(t *testing.T) {
	begin := time.Date(2026, 12, 21, 10, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	held := func(minutes int, rule string) simulation.Step {
		return simulation.Step{At: at(minutes), Verdict: explain.Held, Why: []explain.ReasonCount{{Verdict: explain.Held, Reason: "Held", Rule: rule, Pods: 2}}}
	}
	moves := func(minutes, wave int) simulation.Step {
		return simulation.Step{At: at(minutes), Verdict: explain.Updating, Wave: wave}
	}
	report := func(kind, name, how string, end, waves int, steps ...simulation.Step) simulation.Report {
		return simulation.Report{
			Workload: decision.Subject{Kind: kind, Namespace: "shop", Name: name}, Began: begin, Waves: waves, Steps: steps, End: simulation.Outcome{At: at(end), How: how},
		}
	}
	since := at(10)
	stuck := report("DaemonSet", "agent", simulation.Stuck, 90_000, 1, moves(0, 1), held(10, "quorum"))
	stuck.End.Since = &since
	budget := held(30, "protection.budget.exceeded")
	budget.Refused = []simulation.Refusal{{Budget: "db", Rule: "protection.budget.exceeded", Reason: "Held"}}
	bars := simulate.Bars{Reports: []simulation.Report{
		report("CloneSet", "web", simulation.Done, 20, 2, moves(0, 1), moves(10, 2), simulation.Step{At: at(20), Verdict: explain.UpToDate}),
		report("StatefulSet", "db", simulation.Done, 40, 1, held(0, "freeze"), moves(20, 1), budget, held(35, "walk")),
		stuck,
		report("CloneSet", "same", simulation.Done, 0, 0, simulation.Step{At: at(0), Verdict: explain.UpToDate}),
		report("CloneSet", "cut", simulation.Stopped, 10, 1, held(0, "a"), held(1, "b"), held(3, "c"), held(6, "d")),
	}}
	const want = `
5 workloads from 2026-12-21T10:00:00Z, each simulated alone: = pods are updated, - held
CloneSet shop/web     |====================                    |  done after 20m0s in 2 waves
StatefulSet shop/db   |--------------------==========----------|  done after 40m0s in 1 wave
                        held 20m0s by rule freeze (Held)
                        held 5m0s by budget db
DaemonSet shop/agent  |==========------------------------------|  stuck after 10m0s in 1 wave
                        held to the end by rule quorum (Held)
CloneSet shop/same    |                                        |  done after 0s in 0 waves
CloneSet shop/cut     |----------                              |  stopped after 10m0s in 1 wave
                        held 4m0s by rule d (Held)
                        held 3m0s by rule c (Held)
                        held 2m0s by rule b (Held)
                        and by 1 others
                      |0s                                 40m0s|
`
	var out strings.Builder
	if err := bars.WriteBars(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
