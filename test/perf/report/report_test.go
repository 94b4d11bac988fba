// SPDX-License-Identifier: Apache-2.0

package report

import "testing"

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
