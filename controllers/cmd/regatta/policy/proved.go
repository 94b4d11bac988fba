// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/prove"
)

func (p proved) writeText(out io.Writer) error {
	if c := p.Found; c != nil {
		if err := p.writeCounterexample(out, c); err != nil {
			return err
		}
	}
	for _, r := range p.Points {
		p.writePoint(out, r)
	}
	if p.Stopped != "" {
		fmt.Fprintf(out, "%s before all of --worlds were tried; a point that is not listed was not searched\n", p.Stopped)
	}
	if p.Found == nil {
		fmt.Fprintln(out, "This says nothing about other inputs, nor about how long decisions take.")
	}
	return nil
}

func (p proved) writeCounterexample(out io.Writer, c *prove.Counterexample) error {
	fmt.Fprintf(out, "%s: %s\n", c.Kind, c.Point)
	if c.Old != nil {
		fmt.Fprintf(out, "  old:   %s\n", sideText(*c.Old))
	}
	fmt.Fprintf(out, "  new:   %s\n", sideText(c.New))
	for _, l := range c.Lost {
		fmt.Fprintf(out, "  lost:  %s\n", p.clauseText(l, p.oldPath, p.old))
	}
	for _, l := range c.Added {
		fmt.Fprintf(out, "  added: %s\n", p.clauseText(l, p.newPath, p.now))
	}
	if len(c.Lost)+len(c.Added) == 0 && len(c.Fields) > 0 {
		fmt.Fprintf(out, "  other: %s\n", strings.Join(c.Fields, ", "))
	}
	if c.ConditionError != "" {
		fmt.Fprintf(out, "  condition: not true, because %s\n", c.ConditionError)
	}
	if p.Written != "" {
		fmt.Fprintf(out, "  case:  %s\n", p.Written)
	}
	text, err := c.WriteCase()
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	for line := range strings.Lines(string(text)) {
		fmt.Fprint(out, "  ", line)
	}
	fmt.Fprintln(out)
	return nil
}

func (p proved) clauseText(c prove.Clause, path string, b *bundle.Bundle) string {
	out := c.Reason + " of " + c.Rule
	if c.Place != "" {
		out += " at " + p.clausePlace(c, path, b)
	}
	return out
}

// clausePlace is where a clause is, as seen from outside of the bundle.
func (p proved) clausePlace(c prove.Clause, path string, b *bundle.Bundle) string {
	if b == nil || c.Bundle != "" && !strings.HasPrefix(c.Bundle, b.Name+"@") && c.Bundle != b.Name {
		return c.Place // a built-in rule
	}
	return bundleFilePath(path, c.Place)
}

// writePoint says how far the search came at a point.
func (p proved) writePoint(out io.Writer, r prove.PointReport) {
	verdict := "no counterexample"
	if p.Found != nil && p.Found.Point == r.Point {
		verdict = "counterexample"
	}
	fmt.Fprintf(out, "%s up to size %d: %s of %s (%s)\n", verdict, r.Elements, formatCount(r.Tried, "world"), r.Point, p.describeExtent(r))
	var facts []string
	for _, f := range r.Facts {
		facts = append(facts, fmt.Sprintf("%s (%d)", f.Name, f.Values))
	}
	if len(facts) > 0 {
		fmt.Fprintf(out, "  varied: %s\n", strings.Join(facts, ", "))
	}
	if len(r.NotVaried) > 0 {
		fmt.Fprintf(out, "  not varied: %s\n", strings.Join(r.NotVaried, ", "))
	}
	for _, left := range []struct {
		n    int
		what string
	}{
		{r.Undecided, "that the old policies do not decide"}, {r.TimedOut, "with a late answer, which do not count"},
		{r.Invalid, "that the point does not accept"}, {r.Exempt, "for which the condition is true"},
		{r.Unevaluated, "for which the condition failed to evaluate, so that a difference counts"},
		{r.Unstable, "whose answers were not the same each time"},
	} {
		if left.n > 0 {
			fmt.Fprintf(out, "  %s %s\n", formatCount(left.n, "world"), left.what)
		}
	}
}

// describeExtent says which part of the worlds was tried.
func (p proved) describeExtent(r prove.PointReport) string {
	bases := formatCount(r.Bases, "base")
	switch {
	case r.Exhausted:
		return "all that the values below make of " + bases
	case r.Worlds > 0:
		return fmt.Sprintf("of %d, with %s", r.Worlds, bases)
	}
	return fmt.Sprintf("drawn with seed %d, with %s", p.Seed, bases)
}

func counterexampleMeanings() []meaning {
	return []meaning{
		{string(compare.Lost), "The old policies decide, and the new ones do not."},
		{string(compare.Looser), "Something goes that did not go before."},
		{string(compare.Stricter), "Less is disrupted, or more is refused."},
		{string(compare.Changed), "It is decided otherwise, and neither stricter nor looser."},
	}
}

// listFindings is the counterexample, at the clause that was lost or added.
func (p proved) listFindings() []finding {
	c := p.Found
	if c == nil {
		return nil
	}
	shown := replayed{path: p.newPath, bundle: p.now}
	place := ""
	switch {
	case len(c.Lost) > 0 && p.old != nil:
		shown, place = replayed{path: p.oldPath, bundle: p.old}, c.Lost[0].Place
	case len(c.Added) > 0:
		place = c.Added[0].Place
	}
	message := fmt.Sprintf("%s: %s", c.Point, sideText(c.New))
	if c.Old != nil {
		message = fmt.Sprintf("%s: %s -> %s", c.Point, sideText(*c.Old), sideText(c.New))
	}
	return []finding{{string(c.Kind), bad, shown.resolvePlace(place, message)}}
}

// newJUnitSuite returns a suite with a test for each point.
func (p proved) newJUnitSuite() junitSuite {
	suite := junitSuite{Name: "prove"}
	for _, r := range p.Points {
		c := junitCase{Class: p.newPath, Name: fmt.Sprintf("%s is %s", r.Point, p.Mode)}
		if p.Found != nil && p.Found.Point == r.Point {
			var lines []string
			for _, f := range p.listFindings() {
				lines = append(lines, f.String())
			}
			c.Failure = newJUnitFailure(lines)
		}
		suite.addCase(c)
	}
	return suite
}
