// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

const (
	testsFile  = "testdata/alerts_test.yaml"
	alertsFile = "../../charts/kruise/files/alerts.yaml"
	runbook    = "https://github.com/regatta-sh/regatta/blob/main/controllers/docs/metrics.md#"
)

// readAlerts reads the alerts of the chart.
func readAlerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	out := readRules(t, alertsFile)
	if len(out) < 20 {
		t.Fatalf("there are %d alerts", len(out))
	}
	return out
}

func TestAlertsFireAndDoNotFire(t *testing.T) {
	file := readUnitTests(t, testsFile)
	var rules []rulefmt.Rule
	for _, name := range file.RuleFiles {
		rules = append(rules, readRules(t, name)...)
	}
	for _, u := range file.Tests {
		t.Run(u.Name, func(t *testing.T) {
			for _, texts := range u.evaluateRules(t, time.Duration(file.EvaluationInterval), rules) {
				for _, name := range []string{"summary", "description", "runbook_url"} {
					if text := texts[name]; text == "" || strings.ContainsAny(text, "<{") || strings.Contains(text, "  ") || strings.Contains(text, " .") {
						t.Errorf("annotation %s is %q", name, text)
					}
				}
			}
		})
	}
}

var tested = regexp.MustCompile(`^ALERTS\{alertname="(\w+)",alertstate="firing"\}$`)

// Each alert has a test in which it fires, and one with its metric in which it does not.
func TestEachAlertIsTested(t *testing.T) {
	fires, quiet := map[string]bool{}, map[string]bool{}
	names := map[string]map[string]bool{}
	for _, a := range readAlerts(t) {
		names[a.Alert] = map[string]bool{}
		for _, metric := range listMetrics(t, a.Expr) {
			names[a.Alert][metric] = true
		}
	}
	for _, u := range readUnitTests(t, testsFile).Tests {
		for _, e := range u.Exprs {
			found := tested.FindStringSubmatch(e.Expr)
			if found == nil || names[found[1]] == nil {
				t.Errorf("%s: %s is about no alert", u.Name, e.Expr)
				continue
			}
			if len(e.Samples) > 0 {
				fires[found[1]] = true
				continue
			}
			for _, s := range u.Series {
				metric, _, err := queries.ParseSeriesDesc(s.Series + " " + s.Values)
				if err != nil {
					t.Fatalf("%s: %v", u.Name, err)
				}
				quiet[found[1]] = quiet[found[1]] || names[found[1]][metric.Get(model.MetricNameLabel)]
			}
		}
	}
	for name := range names {
		if !fires[name] || !quiet[name] {
			t.Errorf("%s: a test in which it fires: %v; one in which it does not: %v", name, fires[name], quiet[name])
		}
	}
}

func TestAlertsSayWhatToDo(t *testing.T) {
	for _, a := range readAlerts(t) {
		if a.Alert == "" || !strings.HasPrefix(a.Alert, "Regatta") {
			t.Errorf("the alert %q has another name than those of Regatta", a.Alert)
		}
		if s := a.Labels["severity"]; s != "critical" && s != "warning" && s != "info" {
			t.Errorf("%s has the severity %q", a.Alert, s)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", a.Alert)
		}
		// The page of metrics has it as it is.
		if strings.Contains(a.Annotations["description"], "{{") {
			t.Errorf("the description of %s has a template", a.Alert)
		}
		if want := runbook + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s has the runbook %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
	}
}
