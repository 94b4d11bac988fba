// SPDX-License-Identifier: Apache-2.0

package kubestatemetrics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// PageFile is the page with the tables of metrics.
const PageFile = "metrics.md"

const (
	tablesBegin = "<!-- metrics: written by go run ./charts/integrations/kubestatemetrics/generate -->\n"
	tablesEnd   = "<!-- end of metrics -->\n"
)

// ReplaceTables puts the tables of metrics in the place of those that a page has.
func ReplaceTables(page string) (string, error) {
	before, rest, begins := strings.Cut(page, tablesBegin)
	_, after, ends := strings.Cut(rest, tablesEnd)
	if !begins || !ends {
		return "", errors.New("the page has no place for the tables of metrics")
	}
	return before + tablesBegin + renderTables() + "\n" + tablesEnd + after, nil
}

// renderTables writes a table of metrics for each kind.
func renderTables() string {
	var out strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&out, "\n## %s\n\n| metric | labels | value |\n|---|---|---|\n", k.name)
		for _, m := range k.metrics {
			fmt.Fprintf(&out, "| `%s_%s` | %s | %s |\n", k.prefix, m.name, renderLabels(k, m), m.help)
		}
	}
	return out.String()
}

// renderLabels lists the labels of a metric, those of its kind first.
func renderLabels(k kind, m metric) string {
	labels := []string{k.label}
	if k.namespaced {
		labels = append(labels, "namespace")
	}
	labels = append(labels, slices.Sorted(maps.Keys(m.labels))...)
	if m.state != "" {
		labels = append(labels, m.state)
	}
	return "`" + strings.Join(labels, "`, `") + "`"
}
