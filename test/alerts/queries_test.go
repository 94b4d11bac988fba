// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// metric is one of the table of metrics.
type metric struct {
	Name   string   `yaml:"name"`
	Type   string   `yaml:"type"`
	Labels []string `yaml:"labels"`
}

// ofTargets are labels that Prometheus gives all metrics of the manager and of node agents.
var ofTargets = []string{model.MetricNameLabel, "instance", "job", "node", "pod"}

func readTable(t *testing.T) map[string]metric {
	t.Helper()
	data, err := os.ReadFile("../../controllers/docs/metrics/metrics.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Metrics []metric `yaml:"metrics"`
	}
	if err := yaml.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	out := map[string]metric{}
	for _, m := range table.Metrics {
		if m.Type != "histogram" {
			out[m.Name] = m
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			part := m
			if suffix == "_bucket" {
				part.Labels = append(slices.Clone(m.Labels), "le")
			}
			out[m.Name+suffix] = part
		}
	}
	return out
}

// parseQuery parses an expression, in which Grafana replaces its own interval.
func parseQuery(t *testing.T, expr string) parser.Expr {
	t.Helper()
	parsed, err := queries.ParseExpr(strings.ReplaceAll(expr, "$__rate_interval", "5m"))
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return parsed
}

// listMetrics returns the names of the metrics of an expression.
func listMetrics(t *testing.T, expr string) (out []string) {
	t.Helper()
	parser.Inspect(parseQuery(t, expr), func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			out = append(out, s.Name)
		}
		return nil
	})
	return out
}

// listLabels returns the labels that an expression selects or groups by.
func listLabels(t *testing.T, expr string) (out []string) {
	t.Helper()
	parser.Inspect(parseQuery(t, expr), func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			for _, m := range n.LabelMatchers {
				out = append(out, m.Name)
			}
		case *parser.AggregateExpr:
			out = append(out, n.Grouping...)
		}
		return nil
	})
	return out
}

// checkQuery fails the test where an expression, or a text with its labels, names what the table has not got.
func checkQuery(t *testing.T, table map[string]metric, expr string, shown []string) {
	t.Helper()
	known := slices.Clone(ofTargets)
	names := listMetrics(t, expr)
	if len(names) == 0 {
		t.Errorf("%s has no metric", expr)
	}
	for _, name := range names {
		m, ok := table[name]
		if !ok {
			t.Errorf("%s: metrics.yaml has no metric %s", expr, name)
		}
		known = append(known, m.Labels...)
	}
	for _, label := range append(listLabels(t, expr), shown...) {
		if !slices.Contains(known, label) {
			t.Errorf("%s: no metric of it has the label %s", expr, label)
		}
	}
}

var shownByRule = regexp.MustCompile(`\$labels\.(\w+)`)

func TestAlertsUseMetricsOfTheTable(t *testing.T) {
	table := readTable(t)
	for _, a := range readAlerts(t) {
		var shown []string
		for _, found := range shownByRule.FindAllStringSubmatch(a.Annotations["summary"], -1) {
			shown = append(shown, found[1])
		}
		checkQuery(t, table, a.Expr, shown)
	}
}

// dashboard is what is checked of a dashboard of Grafana.
type dashboard struct {
	UID    string  `json:"uid"`
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ H, W, X, Y int }
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
	Targets []struct{ RefID, Expr, LegendFormat string }
}

var shownByPanel = regexp.MustCompile(`\{\{(\w+)\}\}`)

func (p panel) check(t *testing.T, table map[string]metric) {
	t.Helper()
	if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
		t.Errorf("panel %d has no title, description, unit or query", p.ID)
	}
	for _, q := range p.Targets {
		var shown []string
		for _, found := range shownByPanel.FindAllStringSubmatch(q.LegendFormat, -1) {
			shown = append(shown, found[1])
		}
		if q.LegendFormat == "" || q.RefID == "" {
			t.Errorf("panel %d has a query without a legend or a name", p.ID)
		}
		checkQuery(t, table, q.Expr, shown)
	}
}

func TestPanelsQueryMetricsOfTheTable(t *testing.T) {
	files, err := filepath.Glob("../../charts/kruise/files/dashboards/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("there are %d dashboards, %v", len(files), err)
	}
	table, shown := readTable(t), map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID == "" || d.Title == "" || len(d.Panels) < 5 {
			t.Errorf("%s has no uid, no title or %d panels", file, len(d.Panels))
		}
		ids := map[int]bool{}
		for i, p := range d.Panels {
			if ids[p.ID] || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: panel %d has the id of another one, or no place", file, p.ID)
			}
			ids[p.ID] = true
			for _, other := range d.Panels[:i] {
				a, b := p.GridPos, other.GridPos
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: panels %d and %d are in the same place", file, other.ID, p.ID)
				}
			}
			if p.Type == "row" {
				continue
			}
			p.check(t, table)
			for _, q := range p.Targets {
				for _, name := range listMetrics(t, q.Expr) {
					shown[name] = true
				}
			}
		}
	}
	for name, m := range table {
		if m.Type != "histogram" && !shown[name] || strings.HasSuffix(name, "_bucket") && !shown[name] {
			t.Errorf("no dashboard shows %s", name)
		}
	}
}
