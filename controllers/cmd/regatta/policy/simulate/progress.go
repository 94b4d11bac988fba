// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"time"

	"github.com/regatta-sh/regatta/controllers/simulation"
)

// often is how long a line of progress stays at least, so that a slow terminal does not slow down the
// simulation.
const often = 100 * time.Millisecond

// Progress is a line on a terminal about how far a simulation or another long command is. The next line is written over it. A
// nil Progress prints nothing.
type Progress struct {
	out   io.Writer
	clock func() time.Time
	told  time.Time // when a line was written; zero if none is shown
}

// NewProgress makes a Progress for a terminal. clock is the real time.
func NewProgress(out io.Writer, clock func() time.Time) *Progress {
	return &Progress{out: out, clock: clock}
}

// ReportGrowth reports the progress of generating a fleet.
func (p *Progress) ReportGrowth(now simulation.Progress) {
	p.writeLine("growing the fleet: %d of %d pods", now.Pods, now.Replicas)
}

// ReportRollout reports the progress of a rollout.
func (p *Progress) ReportRollout(now simulation.Progress) {
	p.writeLine("wave %d at %s: %d of %d pods updated", now.Wave, now.At.Format(time.RFC3339), now.Updated, now.Replicas)
}

// ReportCount reports how many of something are done.
func (p *Progress) ReportCount(what string, done, all int) {
	p.writeLine("%s: %d of %d", what, done, all)
}

// ClearLine clears the line before other output is written.
func (p *Progress) ClearLine() {
	if p != nil && !p.told.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.told = time.Time{}
	}
}

func (p *Progress) writeLine(format string, args ...any) {
	if p == nil {
		return
	}
	if now := p.clock(); now.Sub(p.told) >= often {
		fmt.Fprintf(p.out, "\r"+format+"\x1b[K", args...)
		p.told = now
	}
}
