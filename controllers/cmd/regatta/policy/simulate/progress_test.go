// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/simulate"
	"github.com/regatta-sh/regatta/controllers/simulation"
)

func TestALineOfProgressIsWrittenOver(t *testing.T) {
	at := time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC)
	wall := at
	var out strings.Builder
	p := simulate.NewProgress(&out, func() time.Time { return wall })
	p.ClearLine()
	p.ReportGrowth(simulation.Progress{At: at, Pods: 4, Replicas: 500})
	wall = wall.Add(50 * time.Millisecond)
	p.ReportGrowth(simulation.Progress{At: at, Pods: 5, Replicas: 500}) // too soon
	wall = wall.Add(50 * time.Millisecond)
	p.ReportRollout(simulation.Progress{At: at, Wave: 2, Pods: 500, Updated: 60, Replicas: 500})
	p.ClearLine()
	p.ClearLine() // there is none any more
	const want = "\rgrowing the fleet: 4 of 500 pods\x1b[K" +
		"\rwave 2 at 2026-12-24T10:00:00Z: 60 of 500 pods updated\x1b[K" +
		"\r\x1b[K"
	if out.String() != want {
		t.Errorf("it wrote %q, want %q", out.String(), want)
	}
}

func TestNobodyIsToldOfProgressWithoutATerminal(_ *testing.T) {
	var p *simulate.Progress
	p.ReportGrowth(simulation.Progress{})
	p.ReportRollout(simulation.Progress{})
	p.ClearLine()
}
