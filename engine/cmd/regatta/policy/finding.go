package policy

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/regatta-sh/regatta/engine/bundle/lint"
	"github.com/regatta-sh/regatta/engine/module"
)

// annotate prints a problem as GitHub shows it beside a line.
func annotate(out io.Writer, p module.Problem, title string) {
	value := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	fmt.Fprintf(out, "::error file=%s,line=%d,col=%d,title=%s::%s\n", property.Replace(p.File), p.Row, p.Col, property.Replace(title), value.Replace(p.Message))
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

func asSARIF(findings []lint.Finding) sarif {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "regatta"}}, Results: []sarifResult{}}
	for _, r := range lint.Rules() {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{r.ID, sarifText{r.Meaning}})
	}
	for _, f := range findings {
		var at sarifPhysical
		at.Artifact.URI = filepath.ToSlash(f.File)
		at.Region.Line, at.Region.Column = f.Row, f.Col
		run.Results = append(run.Results, sarifResult{f.Rule, "error", sarifText{f.Message}, []sarifLocation{{at}}})
	}
	return sarif{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}
