// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/regatta-sh/regatta/engine/bundle/lint"
	"github.com/regatta-sh/regatta/engine/bundle/lint/deep"
	"github.com/regatta-sh/regatta/engine/module"
)

// level is the severity of a finding, in the terms of SARIF.
type level string

const (
	bad  level = "error"
	note level = "note"
)

// finding is a message about a place in a bundle, from any command.
type finding struct {
	rule  string
	level level
	module.Problem
}

// meaning is a rule that findings name, and its description.
type meaning struct{ id, text string }

func convertFindings(findings []lint.Finding) []finding {
	var out []finding
	for _, f := range findings {
		as := bad
		if f.Note {
			as = note
		}
		out = append(out, finding{f.Rule, as, f.Problem})
	}
	return out
}

func lintRules() []meaning {
	out := []meaning{{invalid, "What cannot be read is no bundle."}}
	for _, r := range lint.AllRules() {
		out = append(out, meaning{r.ID, r.Meaning})
	}
	return out
}

func deepRules() []meaning {
	var out []meaning
	for _, r := range deep.AllRules() {
		out = append(out, meaning{r.ID, r.Meaning})
	}
	return out
}

// printAnnotation prints a finding as GitHub shows it beside a line.
func printAnnotation(out io.Writer, f finding) {
	value := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	command := map[level]string{bad: "error", note: "notice"}[f.level]
	fmt.Fprintf(out, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", command, property.Replace(f.File), f.Row, f.Col, property.Replace(f.rule), value.Replace(f.Message))
}

// The parts of SARIF 2.1.0 that are needed:
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
type (
	sarif struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			Line   int `json:"startLine"`
			Column int `json:"startColumn"`
		} `json:"region"`
	}
)

// fileURI is a file as SARIF names it: a reference that is relative, or one to this
// machine (3.4.3 of the standard).
func fileURI(file string) string {
	u := url.URL{Path: filepath.ToSlash(file)}
	if filepath.IsAbs(file) {
		u.Scheme = "file"
	}
	return u.String()
}

func asSARIF(rules []meaning, findings []finding) sarif {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "regatta", Rules: []sarifRule{}}}, Results: []sarifResult{}}
	for _, r := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{r.id, sarifText{r.text}})
	}
	for _, f := range findings {
		var at sarifPhysical
		at.Artifact.URI = fileURI(f.File)
		at.Region.Line, at.Region.Column = max(f.Row, 1), max(f.Col, 1)
		run.Results = append(run.Results, sarifResult{f.rule, string(f.level), sarifText{f.Message}, []sarifLocation{{at}}})
	}
	return sarif{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}
