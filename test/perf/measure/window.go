// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"

	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/target"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// A Window is a span of time in which a manager is measured that does something else than run a workload.
type Window struct{ reading *reading }

// Begin begins one.
func Begin(ctx context.Context, t *target.Target) (Window, error) {
	r, err := begin(ctx, t, workload.CloneSet()) // whose processes and user are the manager's
	return Window{r}, err
}

// End ends it, and says what the manager used and wrote, for so many things: they are the pods of the report.
func (w Window) End(ctx context.Context, things int) (report.Usage, error) {
	return w.reading.end(ctx, things)
}

// Abandon ends it after an error, and says with it if the manager has ended.
func (w Window) Abandon(err error) error { return w.reading.abandon(err) }
