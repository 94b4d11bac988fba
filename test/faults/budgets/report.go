// SPDX-License-Identifier: Apache-2.0

package budgets

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/regatta-sh/regatta/test/faults/history"
	"github.com/regatta-sh/regatta/test/faults/load"
)

// Report is what came out.
type Report struct {
	Options   Options
	Tally     *load.Tally
	Took      time.Duration
	Kills     int
	Recovered time.Duration
	History   history.Summary
	Want      map[string]int
}

// Err is nil if everything was as promised.
func (r *Report) Err() error {
	switch {
	case len(r.History.Violations) > 0:
		var lines []string
		for _, v := range r.History.Violations[:min(len(r.History.Violations), 10)] {
			lines = append(lines, v.String())
		}
		return fmt.Errorf("%d violations, such as:\n%s", len(r.History.Violations), strings.Join(lines, "\n"))
	case len(r.Tally.Odd) > 0:
		return fmt.Errorf("requests failed as they should not:\n%s", strings.Join(r.Tally.Odd, "\n"))
	case r.History.Disruptions == 0 || r.History.Full == 0:
		return fmt.Errorf("nothing was tried: %d disruptions, and budgets were used up %d times", r.History.Disruptions, r.History.Full)
	}
	return nil
}

func (r *Report) String() string {
	var out strings.Builder
	o, h := r.Options, r.History
	fmt.Fprintf(&out, "%d requests of %d clients in %s (%.0f a second), %d replicas killed %d times, %d budgets of %d pods\n\n",
		o.Requests, o.Clients, r.Took.Round(time.Second), float64(o.Requests)/r.Took.Seconds(), o.Replicas, r.Kills, o.Budgets, o.Pods)
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	outcomes := []string{load.Allowed, load.Denied, load.Failed, load.Missed}
	fmt.Fprintf(w, "\t%s\t\n", strings.Join(outcomes, "\t"))
	for _, op := range load.Operations() {
		fmt.Fprintf(w, "%s\t", op)
		for _, outcome := range outcomes {
			fmt.Fprintf(w, "%d\t", r.Tally.Count(op, outcome))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(&out, "\nchecked: %d versions of pods and %d of budgets in the order they were stored, %d disruptions; budgets were used up to the last pod %d times\n",
		h.Pods, h.Statuses, h.Disruptions, h.Full)
	fmt.Fprintf(&out, "all budgets had recovered %s after the last request\nviolations: %d\n", r.Recovered.Round(time.Second/10), len(h.Violations))
	return out.String()
}
