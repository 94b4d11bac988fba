// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine/bundle/gate"
)

// The parts of JUnit's report that build servers read:
// https://github.com/testmoapp/junitxml
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr,omitempty"`
		Time    string        `xml:"time,attr,omitempty"`
		Failure *junitFailure `xml:"failure"`
		Skipped *struct{}     `xml:"skipped"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func (s *junitSuite) addCase(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	if c.Failure != nil {
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
}

func newJUnitFailure(lines []string) *junitFailure {
	if len(lines) == 0 {
		return nil
	}
	return &junitFailure{lines[0], strings.Join(lines, "\n")}
}

// writeJUnit writes the tests, the cases and, as one test each, the stages of the
// gate before them: a bundle that does not compile is a failed test too.
func (o outcome) writeJUnit(out io.Writer) error {
	stages, rego, yaml := junitSuite{Name: "gate"}, junitSuite{Name: "rego"}, junitSuite{Name: "cases"}
	through := o.Stages
	if o.Refused != "" && !slices.ContainsFunc(through, func(s gate.Took) bool { return s.Stage == o.Refused }) {
		through = append(slices.Clone(through), gate.Took{Stage: o.Refused}) // the stage was ended from outside
	}
	for _, s := range through {
		c := junitCase{Class: o.Path, Name: string(s.Stage), Time: formatSeconds(s.Duration)}
		if s.Stage == o.Refused && s.Stage != gate.Tests {
			var lines []string
			for _, p := range o.Problems {
				lines = append(lines, p.String())
			}
			c.Failure = newJUnitFailure(lines)
		}
		if s.Stage != gate.Tests && s.Stage != gate.Replay {
			stages.addCase(c)
		}
	}
	for _, t := range o.Tests {
		class, name := cutLast(t.Name, ".")
		c := junitCase{Class: class, Name: name, File: fileOf(t.Place), Time: formatSeconds(t.Duration)}
		if t.Skipped {
			c.Skipped = &struct{}{}
		} else if !t.Passed {
			c.Failure = newJUnitFailure([]string{t.Message})
		}
		rego.addCase(c)
	}
	for _, x := range o.Cases {
		file := fileOf(x.Place)
		yaml.addCase(junitCase{Class: file, Name: x.Name, File: file, Failure: newJUnitFailure(x.Problems)})
	}
	if o.Mutants == nil {
		return printJUnit(out, stages, rego, yaml)
	}
	changes := junitSuite{Name: "mutants", Tests: o.Mutants.Killed}
	for _, m := range o.Mutants.Survived {
		changes.addCase(junitCase{Class: m.File, Name: fmt.Sprintf("%d:%d: %s", m.Row, m.Col, m.Change), File: m.File, Failure: newJUnitFailure([]string{"no test and no case notices it"})})
	}
	return printJUnit(out, stages, rego, yaml, changes)
}

// fileOf is the file of file:row:col.
func fileOf(place string) string {
	file, _ := cutLast(place, ":")
	file, _ = cutLast(file, ":")
	return file
}

func cutLast(s, sep string) (before, after string) {
	i := strings.LastIndex(s, sep)
	return s[:max(i, 0)], s[i+1:]
}

func printJUnit(out io.Writer, suites ...junitSuite) error {
	if _, err := io.WriteString(out, xml.Header); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	enc := xml.NewEncoder(out)
	enc.Indent("", "  ")
	if err := enc.Encode(junitSuites{Suites: suites}); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	_, err := fmt.Fprintln(out)
	return err
}

func formatSeconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
