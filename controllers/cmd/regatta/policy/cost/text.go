// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// WriteText writes a report as a table, with so many workloads below each rule.
func (r Report) WriteText(to io.Writer, workloads int) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "%d decisions", r.Decisions)
	if !r.From.IsZero() {
		fmt.Fprintf(w, "; what rules cost from %s to %s", r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339))
	}
	fmt.Fprintln(w)
	if r.Undecided > 0 {
		fmt.Fprintf(w, "%d of them were made by no policy, and a fallback answered\n", r.Undecided)
	}
	if len(r.Rules) == 0 {
		fmt.Fprintln(w, "no rule held or denied anything")
	} else {
		fmt.Fprint(w, "\nRULE\tDENIED\tHELD\tOPEN\tWORKLOADS\tHOURS\n")
	}
	for _, rule := range r.Rules {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.1f\n", rule.Rule, rule.Denied, rule.Held, rule.Open, rule.WorkloadCount, rule.Hours)
		for _, of := range rule.Workloads[:min(len(rule.Workloads), workloads)] {
			fmt.Fprintf(w, "  %s\t\t%d\t\t\t%.1f\n", formatSubject(of.Subject), of.Held, of.Hours)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// formatSubject names a workload, without a namespace where it has none.
func formatSubject(s decision.Subject) string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}
