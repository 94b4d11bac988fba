// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "../../.."

var name = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

func TestTheTableIsComplete(t *testing.T) {
	table, err := ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, m := range table.Metrics {
		if m.From == "" {
			own++
		}
		if !name.MatchString(m.Name) || !slices.Contains([]string{"counter", "gauge", "histogram"}, m.Type) {
			t.Errorf("%s is a %q", m.Name, m.Type)
		}
		if strings.HasSuffix(m.Name, "_total") && m.Type != "counter" {
			t.Errorf("%s is a %s", m.Name, m.Type)
		}
		if len(m.ServedBy) == 0 || m.Meaning == "" || m.Chinese == "" || strings.Contains(m.Meaning+m.Chinese, "|") {
			t.Errorf("%s is served by %v and means %q, %q", m.Name, m.ServedBy, m.Meaning, m.Chinese)
		}
		for _, by := range m.ServedBy {
			for page, lang := range pages {
				if lang.served[by] == "" {
					t.Errorf("%s has no name for %q, which serves %s", page, by, m.Name)
				}
			}
		}
		if seconds := strings.HasSuffix(m.Name, "_seconds"); seconds && (!strings.Contains(m.Meaning, "seconds") || !strings.Contains(m.Chinese, "秒")) {
			t.Errorf("what %s means does not say that it is in seconds", m.Name)
		}
	}
	if own < 20 {
		t.Errorf("the table has %d metrics of Regatta", own)
	}
	for alert, texts := range table.Alerts {
		if texts.Meaning == "" || texts.Chinese == "" || texts.Remedy == "" {
			t.Errorf("the texts of %s are %+v", alert, texts)
		}
	}
}

// An alert without texts, and texts without an alert, are errors.
func TestAlertsAndTheirTextsAgree(t *testing.T) {
	for text, want := range map[string]string{
		"groups: [{name: a, rules: [{alert: Other, expr: up}]}]":           "metrics.yaml has no texts of the alert Other",
		"groups: [{name: a, rules: [{alert: RegattaNoLeader, expr: up}]}]": "charts/kruise/files/alerts.yaml has 1 alerts",
		"groups: [{name: a, rules: [{alert: A, expression: up}]}]":         `unknown field "expression"`,
	} {
		if _, err := RenderPages(fstest.MapFS{AlertsFile: {Data: []byte(text)}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %v, want %s", text, err, want)
		}
	}
	if _, err := RenderPages(fstest.MapFS{}); err == nil {
		t.Error("pages are written without alerts")
	}
}

func TestWhichMetricsAnExpressionUses(t *testing.T) {
	expr := `sum by (point) (rate(regatta_decisions_total[5m])) / histogram_quantile(0.9, regatta_decision_seconds_bucket)`
	for name, want := range map[string]bool{
		"regatta_decisions_total": true, "regatta_decision_seconds": true, "regatta_decisions": false, "regatta_decision": false, "seconds": false,
	} {
		if got := usesMetric(expr, name); got != want {
			t.Errorf("the expression uses %s: %v", name, got)
		}
	}
}

// The table has for each alert a metric, so that no section of an alert is reached from no metric.
func TestEachAlertIsBesideItsMetrics(t *testing.T) {
	alerts, err := ReadAlerts(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	table, err := ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts {
		if !slices.ContainsFunc(table.Metrics, func(m Metric) bool { return usesMetric(a.Expr, m.Name) }) {
			t.Errorf("%s uses no metric of the table", a.Name)
		}
	}
}

func TestThePagesAreGenerated(t *testing.T) {
	want, err := RenderPages(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(text) {
			t.Errorf("%s is stale; run make generate", name)
		}
	}
}

// The node agent serves what the libraries register and what controllers/recovery does. The table says so.
func TestTheAgentRegistersNoMetricOfItsOwn(t *testing.T) {
	read := 0
	err := filepath.WalkDir(filepath.Join(root, "nodeagent"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), `"github.com/prometheus/client_golang/prometheus"`) {
			t.Errorf("%s makes a metric: say in metrics.yaml which metrics of it the agent serves, and look for them in this test", path)
		}
		read++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 20 {
		t.Errorf("read %d files", read)
	}
	table, err := ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range table.Metrics {
		if m.From == "" && slices.Contains(m.ServedBy, Agent) != (m.Name == "regatta_panics_total") {
			t.Errorf("the table says that %v serve %s", m.ServedBy, m.Name)
		}
	}
}
