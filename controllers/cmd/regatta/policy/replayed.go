// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/replay"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// replayed prints a report.
type replayed struct {
	*replay.Report
	path   string
	bundle *bundle.Bundle
	failOn []string
}

// failed is what --fail-on says of the report, nil if nothing.
func (r replayed) failed() error {
	var out []string
	for _, k := range kinds() {
		if n := r.Count(k); n > 0 && r.fails(k) {
			out = append(out, fmt.Sprintf("%d %s", n, k))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return fmt.Errorf("of %s are %s", plural(r.Decisions, "decision"), strings.Join(out, ", "))
}

func (r replayed) fails(k compare.Kind) bool { return slices.Contains(r.failOn, string(k)) }

func (r replayed) print(out io.Writer, form string) error {
	switch form {
	case output.JSON:
		return output.PrintJSON(out, r.Report)
	case output.JUnit:
		return printJUnit(out, r.suite())
	case output.SARIF:
		return output.PrintJSON(out, asSARIF(r.meanings(), r.findings()))
	case output.GitHub:
		for _, f := range r.findings() {
			annotate(out, f)
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	r.text(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func (r replayed) text(w io.Writer) {
	fmt.Fprintf(w, "%s", plural(r.Decisions, "decision"))
	if !r.From.IsZero() {
		fmt.Fprintf(w, " from %s to %s", clock(r.From), clock(r.To))
	}
	against := "policies " + bundle.ShortRevision(r.Baseline)
	if r.Baseline == replay.Recorded {
		against = "what was recorded"
	}
	fmt.Fprintf(w, ", with %s, against %s\n", bundle.ShortID(r.Bundle), against)
	if r.Masked > 0 {
		fmt.Fprintf(w, "%d of them had facts hidden when they were recorded, and may differ for that alone\n", r.Masked)
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(w, "active then and not now, which shows as differences: %s; name bundles with --active\n", strings.Join(bundle.ShortIDs(r.Missing), ", "))
	}
	if r.Stopped != "" {
		fmt.Fprintf(w, "%s: the other %d were not made again\n", r.Stopped, r.Skipped)
	}
	fmt.Fprintf(w, "  unchanged\t%d\n", r.Unchanged)
	for _, k := range kinds() {
		if k != replay.Slower || r.Latency != nil {
			fmt.Fprintf(w, "  %s\t%d\n", k, r.Count(k))
		}
	}
	r.groups(w)
	r.samples(w)
	if len(r.Unused) > 0 {
		fmt.Fprintln(w, "\nrules that no decision was made by:")
		for _, rule := range r.Unused {
			fmt.Fprintf(w, "  %s\t%s\n", rule.ID, r.place(rule.Place, "").Place())
		}
	}
	r.latency(w)
}

func (r replayed) groups(w io.Writer) {
	if len(r.Groups) == 0 {
		return
	}
	fmt.Fprintln(w, "\nby point and reason:")
	for _, g := range r.Groups {
		if g.Point == "" {
			fmt.Fprintf(w, "  %d\tothers\n", g.Count)
			continue
		}
		fmt.Fprintf(w, "  %d\t%s\t%s\t%s -> %s\n", g.Count, g.Kind, g.Point, g.Then, g.Now)
	}
}

func (r replayed) samples(w io.Writer) {
	if len(r.Samples) == 0 {
		return
	}
	fmt.Fprintln(w, "\nsuch as:")
	for _, s := range r.Samples {
		fmt.Fprintf(w, "  %s\n    then: %s\n    now:  %s\n", headline(s.Difference), sideText(s.Then), sideText(s.Now))
	}
}

func headline(d compare.Difference) string {
	out := fmt.Sprintf("%s: %s of %s", d.Kind, d.Point, subjectText(d.Subject))
	if d.Record > 0 {
		out += ", decision " + strconv.FormatUint(d.Record, 10)
	}
	return out
}

func subjectText(s decision.Subject) string {
	name := s.Name
	if s.Namespace != "" {
		name = s.Namespace + "/" + name
	}
	return strings.TrimSpace(s.Kind + " " + name)
}

// sideText is an answer in a line: the verdict and its first reason.
func sideText(s compare.Side) string {
	if s.Outcome != decision.Decided {
		return fmt.Sprintf("no decision (%s): %s", s.Outcome, s.Error)
	}
	if len(s.Verdict.Reasons) == 0 {
		return s.Verdict.Word
	}
	h := s.Verdict.Reasons[0]
	out := s.Verdict.Word + ", " + h.Reason
	if h.Rule != "" {
		out += " by " + h.Rule
	}
	if more := len(s.Verdict.Reasons) - 1; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out + ": " + h.Message
}

func (r replayed) latency(w io.Writer) {
	if r.Latency == nil || len(r.Latency.Points) == 0 {
		return
	}
	fmt.Fprintln(w, "\nlatency\tp50 then\tnow\tratio\tp99 then\tnow")
	for _, p := range r.Latency.Points {
		ratio := "-"
		if p.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", p.Ratio)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", p.Point, took(p.Then.P50), took(p.Now.P50), ratio, took(p.Then.P99), took(p.Now.P99))
	}
}

func took(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(10 * time.Microsecond).String()
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// suite has a test for each kind and point: that no decision is of that kind.
func (r replayed) suite() junitSuite {
	suite := junitSuite{Name: "replay"}
	for _, k := range kinds() {
		c := junitCase{Class: r.path, Name: "no decision is " + string(k)}
		switch {
		case k == replay.Slower && r.Latency == nil:
			c.Skipped = &struct{}{}
		case r.fails(k) && r.Count(k) > 0:
			lines := []string{fmt.Sprintf("%d of %s: %s", r.Count(k), plural(r.Decisions, "decision"), k)}
			for _, g := range r.Groups {
				if g.Kind == k {
					lines = append(lines, fmt.Sprintf("%d of %s: %s -> %s", g.Count, g.Point, g.Then, g.Now))
				}
			}
			c.Failure = failure(lines)
		}
		suite.add(c)
	}
	return suite
}

func (r replayed) meanings() []meaning {
	return []meaning{
		{string(compare.Lost), "There was a decision, and now there is none."},
		{string(compare.Looser), "Something goes that did not go before."},
		{string(compare.Stricter), "Less is disrupted, or more is refused."},
		{string(compare.Changed), "It is decided otherwise, and neither stricter nor looser."},
		{"unused", "No decision was made by this rule."},
	}
}

// findings are the samples, at the rules that make the difference, and the rules
// that made none.
func (r replayed) findings() []finding {
	var out []finding
	for _, s := range r.Samples {
		g := s.Group()
		f := finding{string(s.Kind), note, r.place(s.Place, fmt.Sprintf("%s, %s -> %s", headline(s.Difference), g.Then, g.Now))}
		if r.fails(s.Kind) {
			f.level = bad
		}
		out = append(out, f)
	}
	for _, rule := range r.Unused {
		out = append(out, finding{"unused", note, r.place(rule.Place, fmt.Sprintf("Of %s none was made by rule %s.", plural(r.Decisions, "decision"), rule.ID))})
	}
	return out
}

// place finds a place of the bundle below the path it was read from. What has
// none is about the bundle as a whole.
func (r replayed) place(where, message string) module.Problem {
	p := module.Problem{File: r.bundle.Name, Row: 1, Col: 1, Message: message}
	if parts := strings.Split(where, ":"); len(parts) > 2 {
		n := len(parts)
		p.File = strings.Join(parts[:n-2], ":")
		p.Row, _ = strconv.Atoi(parts[n-2])
		p.Col, _ = strconv.Atoi(parts[n-1])
	}
	return problemsOf(at(r.path, module.Problems{p}))[0]
}
