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

// failureError is the error about the report that --fail-on asks for, nil if none.
func (r replayed) failureError() error {
	var out []string
	for _, k := range failOnKinds() {
		if n := r.CountKind(k); n > 0 && r.isFailureKind(k) {
			out = append(out, fmt.Sprintf("%d %s", n, k))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return fmt.Errorf("of %s are %s", formatCount(r.Decisions, "decision"), strings.Join(out, ", "))
}

func (r replayed) isFailureKind(k compare.Kind) bool { return slices.Contains(r.failOn, string(k)) }

func (r replayed) printReport(out io.Writer, form string) error {
	switch form {
	case output.JSON:
		return output.PrintJSON(out, r.Report)
	case output.JUnit:
		return printJUnit(out, r.newJUnitSuite())
	case output.SARIF:
		return output.PrintJSON(out, asSARIF(r.findingMeanings(), r.listFindings()))
	case output.GitHub:
		for _, f := range r.listFindings() {
			printAnnotation(out, f)
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	r.writeText(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func (r replayed) writeText(w io.Writer) {
	fmt.Fprintf(w, "%s", formatCount(r.Decisions, "decision"))
	if !r.From.IsZero() {
		fmt.Fprintf(w, " from %s to %s", formatTime(r.From), formatTime(r.To))
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
	for _, k := range failOnKinds() {
		if k != replay.Slower || r.Latency != nil {
			fmt.Fprintf(w, "  %s\t%d\n", k, r.CountKind(k))
		}
	}
	r.writeGroups(w)
	r.writeSamples(w)
	if len(r.Unused) > 0 {
		fmt.Fprintln(w, "\nrules that no decision was made by:")
		for _, rule := range r.Unused {
			fmt.Fprintf(w, "  %s\t%s\n", rule.ID, r.resolvePlace(rule.Place, "").SourcePosition())
		}
	}
	r.writeLatency(w)
}

func (r replayed) writeGroups(w io.Writer) {
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

func (r replayed) writeSamples(w io.Writer) {
	if len(r.Samples) == 0 {
		return
	}
	fmt.Fprintln(w, "\nsuch as:")
	for _, s := range r.Samples {
		fmt.Fprintf(w, "  %s\n    then: %s\n    now:  %s\n", differenceTitle(s.Difference), sideText(s.Then), sideText(s.Now))
	}
}

func differenceTitle(d compare.Difference) string {
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

func (r replayed) writeLatency(w io.Writer) {
	if r.Latency == nil || len(r.Latency.Points) == 0 {
		return
	}
	fmt.Fprintln(w, "\nlatency\tp50 then\tnow\tratio\tp99 then\tnow")
	for _, p := range r.Latency.Points {
		ratio := "-"
		if p.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", p.Ratio)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", p.Point, formatLatency(p.Then.P50), formatLatency(p.Now.P50), ratio, formatLatency(p.Then.P99), formatLatency(p.Now.P99))
	}
}

func formatLatency(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(10 * time.Microsecond).String()
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// newJUnitSuite returns a suite with a test for each kind and point: that no decision is of that kind.
func (r replayed) newJUnitSuite() junitSuite {
	suite := junitSuite{Name: "replay"}
	for _, k := range failOnKinds() {
		c := junitCase{Class: r.path, Name: "no decision is " + string(k)}
		switch {
		case k == replay.Slower && r.Latency == nil:
			c.Skipped = &struct{}{}
		case r.isFailureKind(k) && r.CountKind(k) > 0:
			lines := []string{fmt.Sprintf("%d of %s: %s", r.CountKind(k), formatCount(r.Decisions, "decision"), k)}
			for _, g := range r.Groups {
				if g.Kind == k {
					lines = append(lines, fmt.Sprintf("%d of %s: %s -> %s", g.Count, g.Point, g.Then, g.Now))
				}
			}
			c.Failure = newJUnitFailure(lines)
		}
		suite.addCase(c)
	}
	return suite
}

func (r replayed) findingMeanings() []meaning {
	return []meaning{
		{string(compare.Lost), "There was a decision, and now there is none."},
		{string(compare.Looser), "Something goes that did not go before."},
		{string(compare.Stricter), "Less is disrupted, or more is refused."},
		{string(compare.Changed), "It is decided otherwise, and neither stricter nor looser."},
		{"unused", "No decision was made by this rule."},
	}
}

// listFindings are the samples, at the rules that make the difference, and the rules
// that made none.
func (r replayed) listFindings() []finding {
	var out []finding
	for _, s := range r.Samples {
		g := s.GroupKey()
		f := finding{string(s.Kind), note, r.resolvePlace(s.Place, fmt.Sprintf("%s, %s -> %s", differenceTitle(s.Difference), g.Then, g.Now))}
		if r.isFailureKind(s.Kind) {
			f.level = bad
		}
		out = append(out, f)
	}
	for _, rule := range r.Unused {
		out = append(out, finding{"unused", note, r.resolvePlace(rule.Place, fmt.Sprintf("Of %s none was made by rule %s.", formatCount(r.Decisions, "decision"), rule.ID))})
	}
	return out
}

// resolvePlace finds a place of the bundle below the path it was read from. A problem without a place
// is about the bundle as a whole.
func (r replayed) resolvePlace(where, message string) module.Problem {
	p := module.Problem{File: r.bundle.Name, Row: 1, Col: 1, Message: message}
	if parts := strings.Split(where, ":"); len(parts) > 2 {
		n := len(parts)
		p.File = strings.Join(parts[:n-2], ":")
		p.Row, _ = strconv.Atoi(parts[n-2])
		p.Col, _ = strconv.Atoi(parts[n-1])
	}
	return problemsOf(prefixProblemPaths(r.path, module.Problems{p}))[0]
}
