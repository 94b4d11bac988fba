// SPDX-License-Identifier: Apache-2.0

// Package alerts tests the alerts and the dashboards of the chart with the parser and the engine of Prometheus. It is a module of its own,
// since nothing of Prometheus is a part of Regatta.
package alerts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"go.yaml.in/yaml/v3"
)

// unitTests is a file of tests as promtool reads it, as far as the tests here need it.
type unitTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []unitTest     `yaml:"tests"`
}

// unitTest has series, and what expressions about alerts return after some time.
type unitTest struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Series   []inputSeries  `yaml:"input_series"`
	Exprs    []exprTest     `yaml:"promql_expr_test"`
}

type inputSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type exprTest struct {
	Expr     string         `yaml:"expr"`
	EvalTime model.Duration `yaml:"eval_time"`
	Samples  []sample       `yaml:"exp_samples"`
}

type sample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

// start is when promtool lets each test begin.
var start = time.Unix(0, 0).UTC()

func readUnitTests(t *testing.T, path string) unitTests {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out unitTests
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for i, file := range out.RuleFiles {
		out.RuleFiles[i] = filepath.Join(filepath.Dir(path), file)
	}
	if out.EvaluationInterval <= 0 || len(out.RuleFiles) == 0 || len(out.Tests) == 0 {
		t.Fatalf("%s has no evaluation_interval, no rule_files or no tests", path)
	}
	return out
}

// readRules reads the alerts of a file as Prometheus does.
func readRules(t *testing.T, file string) (out []rulefmt.Rule) {
	t.Helper()
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, queries, promslog.NewNopLogger())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, g := range groups.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

// evaluateRules evaluates rules at each interval, and compares what expressions return. It returns the annotations of alerts that fired.
func (u unitTest) evaluateRules(t *testing.T, every time.Duration, rules []rulefmt.Rule) (fired []map[string]string) {
	t.Helper()
	series := memory{}
	for _, s := range u.Series {
		series.loadSeries(t, s.Series+" "+s.Values, time.Duration(u.Interval))
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 100_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: queries})
	defer engine.Close()
	var alerts []*alertRule
	for _, r := range rules {
		alerts = append(alerts, &alertRule{Rule: r})
	}
	last := slices.MaxFunc(u.Exprs, func(a, b exprTest) int { return int(a.EvalTime - b.EvalTime) }).EvalTime
	for at := start; !at.After(start.Add(time.Duration(last))); at = at.Add(every) {
		for _, a := range alerts {
			texts, err := a.evaluateAt(t.Context(), series, engine, at)
			if err != nil {
				t.Fatalf("after %v: %v", at.Sub(start), err)
			}
			fired = append(fired, texts...)
		}
	}
	for _, e := range u.Exprs {
		e.compareSamples(t, series, engine)
	}
	return fired
}

// compareSamples evaluates the expression and compares its samples.
func (e exprTest) compareSamples(t *testing.T, series memory, engine *promql.Engine) {
	t.Helper()
	vector, err := series.evaluate(t.Context(), engine, e.Expr, start.Add(time.Duration(e.EvalTime)))
	if err != nil {
		t.Fatalf("%s: %v", e.Expr, err)
	}
	var got, want []string
	for _, s := range vector {
		got = append(got, fmt.Sprintf("%s %v", s.Metric, s.F))
	}
	for _, s := range e.Samples {
		metric, err := queries.ParseMetric(s.Labels)
		if err != nil {
			t.Fatalf("%s: %v", s.Labels, err)
		}
		want = append(want, fmt.Sprintf("%s %v", metric, s.Value))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s after %s is\n%s\nwant\n%s", e.Expr, e.EvalTime, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
