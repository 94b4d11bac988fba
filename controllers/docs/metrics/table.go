// SPDX-License-Identifier: Apache-2.0

// Package metrics has the table of the metrics of Regatta, and writes the page of metrics and alerts in two languages.
package metrics

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Parts of Regatta, and of Prometheus, that serve a metric.
const (
	// Manager is each replica of the manager.
	Manager = "manager"
	// Leader is the replica of the manager that leads.
	Leader = "leader"
	// Agent is each node agent.
	Agent = "agent"
	// Prometheus makes a metric itself, of each target that it scrapes.
	Prometheus = "prometheus"
)

// Metric is a metric that alerts or dashboards may use.
type Metric struct {
	Name string `json:"name"`
	// From names whose metric it is; empty for one of Regatta.
	From string `json:"from"`
	// Type is counter, gauge or histogram.
	Type     string   `json:"type"`
	Labels   []string `json:"labels"`
	ServedBy []string `json:"servedBy"`
	// Meaning is in English and names the unit, Chinese says the same.
	Meaning string `json:"meaning"`
	Chinese string `json:"chinese"`
}

// AlertTexts are texts of an alert that its rule does not have.
type AlertTexts struct {
	// Meaning says in English what has happened, Chinese says the same.
	Meaning string `json:"meaning"`
	Chinese string `json:"chinese"`
	// Remedy says in Chinese what the description of the rule says.
	Remedy string `json:"remedy"`
}

// Table is the table of metrics, with texts of the alerts by their names.
type Table struct {
	Metrics []Metric              `json:"metrics"`
	Alerts  map[string]AlertTexts `json:"alerts"`
}

//go:embed metrics.yaml
var source []byte

// ReadTable reads the table. It fails if the table has a field that does not exist, or a metric twice.
func ReadTable() (*Table, error) {
	out := &Table{}
	if err := yaml.UnmarshalStrict(source, out); err != nil {
		return nil, fmt.Errorf("reading metrics.yaml: %w", err)
	}
	seen := map[string]bool{}
	for _, m := range out.Metrics {
		if seen[m.Name] {
			return nil, fmt.Errorf("metrics.yaml has %s twice", m.Name)
		}
		seen[m.Name] = true
	}
	return out, nil
}
