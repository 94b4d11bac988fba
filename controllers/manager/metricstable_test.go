// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	table "github.com/regatta-sh/regatta/controllers/docs/metrics"
	"github.com/regatta-sh/regatta/engine/decision"
	enginemetrics "github.com/regatta-sh/regatta/engine/metrics"
)

// The table of metrics, of which the page is made, has what a manager registers, with its labels.
func TestTheTableOfMetricsIsWhatTheManagerRegisters(t *testing.T) {
	read, err := table.ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	registered, want := listRegisteredMetrics(t), map[string][]string{}
	for _, m := range read.Metrics {
		if m.From != "" {
			continue
		}
		want[m.Name] = append([]string{}, m.Labels...)
		if got := typeOf(registered.collectors[m.Name]); got != "" && got != m.Type {
			t.Errorf("the table has %s as a %s, and the manager registers a %s", m.Name, m.Type, got)
		}
	}
	for name, labels := range registered.metrics {
		registered.metrics[name] = append([]string{}, labels...)
	}
	if diff := cmp.Diff(want, registered.metrics); diff != "" {
		t.Errorf("controllers/docs/metrics/metrics.yaml (-) has other metrics than the manager registers:\n%s", diff)
	}
}

// typeOf is the type of what a collector collects, empty if it collects several metrics or none of its own.
func typeOf(c prometheus.Collector) string {
	switch c.(type) {
	case interface {
		WithLabelValues(...string) prometheus.Counter
	}:
		return "counter"
	case interface {
		WithLabelValues(...string) prometheus.Gauge
	}, prometheus.Gauge:
		return "gauge"
	case prometheus.Counter:
		return "counter"
	}
	return ""
}

// The metrics of decisions are one collector. Their types are those that they have once there is a decision.
func TestTheTableHasTheTypesOfMetricsOfDecisions(t *testing.T) {
	read, err := table.ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	c, registry := enginemetrics.New(), prometheus.NewRegistry()
	registry.MustRegister(c)
	c.RecordDecision(decision.Record{Point: "rollout/plan", Outcome: decision.Decided})
	c.EvaluationStuck("rollout/plan", 1)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 3 {
		t.Errorf("one decision has %d metrics", len(families))
	}
	for _, f := range families {
		at := slices.IndexFunc(read.Metrics, func(m table.Metric) bool { return m.Name == f.GetName() })
		if types := map[string]string{"COUNTER": "counter", "GAUGE": "gauge", "HISTOGRAM": "histogram"}; at < 0 || read.Metrics[at].Type != types[f.GetType().String()] {
			t.Errorf("%s is a %s, and the table does not have it as one", f.GetName(), f.GetType())
		}
	}
}

// Metrics of controller-runtime in the table are registered by it: another one of that name is refused.
func TestTheTableHasMetricsThatControllerRuntimeRegisters(t *testing.T) {
	read, err := table.ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, m := range read.Metrics {
		if m.From != "controller-runtime" {
			continue
		}
		other := prometheus.NewGauge(prometheus.GaugeOpts{Name: m.Name, Help: "A metric of the table."})
		if runtimemetrics.Registry.Register(other) == nil {
			runtimemetrics.Registry.Unregister(other)
			t.Errorf("controller-runtime does not register %s", m.Name)
		}
		checked++
	}
	if checked < 5 {
		t.Errorf("the table has %d metrics of controller-runtime", checked)
	}
}
