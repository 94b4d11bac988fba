// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Files of the chart, by their paths in the repository.
const (
	AlertsFile      = "charts/kruise/files/alerts.yaml"
	DashboardFolder = "charts/kruise/files/dashboards"
)

// Alert is a rule of Prometheus.
type Alert struct {
	Name        string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// ReadAlerts reads the alerts of the chart in a repository.
func ReadAlerts(root fs.FS) (out []Alert, err error) {
	data, err := fs.ReadFile(root, AlertsFile)
	if err != nil {
		return nil, fmt.Errorf("reading alerts: %w", err)
	}
	var file struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []Alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", AlertsFile, err)
	}
	for _, g := range file.Groups {
		out = append(out, g.Rules...)
	}
	return out, nil
}

var word = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)

// usesMetric reports whether an expression names a metric, or a part of a histogram.
func usesMetric(expr, name string) bool {
	return slices.ContainsFunc(word.FindAllString(expr, -1), func(found string) bool {
		rest, ok := strings.CutPrefix(found, name)
		return ok && slices.Contains([]string{"", "_bucket", "_sum", "_count"}, rest)
	})
}

// Dashboard is a dashboard of Grafana.
type Dashboard struct {
	File   string   `json:"-"`
	Title  string   `json:"title"`
	Panels []*Panel `json:"panels"`
}

// Panel is a panel of a dashboard, or a row, which has a title and no queries.
type Panel struct {
	Title string `json:"title"`
	Type  string `json:"type"`
}

// ReadDashboards reads the dashboards of the chart in a repository, in the order of their files.
func ReadDashboards(root fs.FS) (out []Dashboard, err error) {
	files, err := fs.Glob(root, DashboardFolder+"/*.json")
	if err != nil {
		return nil, fmt.Errorf("listing dashboards: %w", err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, fmt.Errorf("reading a dashboard: %w", err)
		}
		d := Dashboard{File: path.Base(file)}
		if err := json.Unmarshal(data, &d); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		out = append(out, d)
	}
	return out, nil
}

// ListRows returns the titles of the rows of a dashboard.
func (d Dashboard) ListRows() (out []string) {
	for _, p := range d.Panels {
		if p.Type == "row" {
			out = append(out, p.Title)
		}
	}
	return out
}
