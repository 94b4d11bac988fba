// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"text/template"

	"github.com/regatta-sh/regatta/policies/spec"
)

//go:embed page.tmpl page.zh-CN.tmpl
var templates embed.FS

// language has what differs between the two pages.
type language struct {
	template string
	served   map[string]string
	list     string // what is between the parts of a list
}

// pages are the templates of the pages by the names of their files.
var pages = map[string]language{
	"metrics.md":       {"page.tmpl", map[string]string{Manager: "manager", Leader: "manager that leads", Agent: "node agent", Prometheus: "Prometheus"}, ", "},
	"metrics.zh-CN.md": {"page.zh-CN.tmpl", map[string]string{Manager: "管理器", Leader: "担任领导者的管理器", Agent: "节点代理", Prometheus: "Prometheus"}, "、"},
}

// content is what the templates show.
type content struct {
	Own, Others []Metric
	Alerts      []describedAlert
	Dashboards  []Dashboard
	lang        language
}

// describedAlert is an alert with its texts.
type describedAlert struct {
	Alert
	AlertTexts
	Anchor, Severity string
}

// RenderPages returns the pages by the names of their files. The alerts and dashboards are those of the chart in a repository. It fails if
// an alert has no texts, or texts are of no alert.
func RenderPages(root fs.FS) (map[string][]byte, error) {
	table, err := ReadTable()
	if err != nil {
		return nil, err
	}
	c := content{}
	for _, m := range table.Metrics {
		if m.From == "" {
			c.Own = append(c.Own, m)
		} else {
			c.Others = append(c.Others, m)
		}
	}
	if c.Alerts, err = describeAlerts(root, table); err != nil {
		return nil, err
	}
	if c.Dashboards, err = ReadDashboards(root); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, lang := range pages {
		c.lang = lang
		if out[name], err = c.renderPage(); err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return out, nil
}

func describeAlerts(root fs.FS, table *Table) (out []describedAlert, err error) {
	alerts, err := ReadAlerts(root)
	if err != nil {
		return nil, err
	}
	for _, a := range alerts {
		texts, ok := table.Alerts[a.Name]
		if !ok {
			return nil, fmt.Errorf("metrics.yaml has no texts of the alert %s", a.Name)
		}
		out = append(out, describedAlert{a, texts, spec.MarkdownAnchor(a.Name), a.Labels["severity"]})
	}
	if len(out) != len(table.Alerts) {
		return nil, fmt.Errorf("metrics.yaml has texts of %d alerts, and %s has %d alerts", len(table.Alerts), AlertsFile, len(out))
	}
	return out, nil
}

func (c content) renderPage() ([]byte, error) {
	t, err := template.New(c.lang.template).Funcs(template.FuncMap{
		"code": quoteCode, "dash": dashEmpty, "served": c.joinServers, "alerts": c.linkAlerts,
	}).ParseFS(templates, c.lang.template)
	if err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	if err := t.Execute(out, c); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// dashEmpty is what a cell of a table has if there is nothing to say.
func dashEmpty(text string) string { return cmp.Or(text, "–") }

// quoteCode quotes names as code, with a space between them.
func quoteCode(names []string) string {
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, "`"+name+"`")
	}
	return strings.Join(quoted, " ")
}

// joinServers says which processes serve a metric.
func (c content) joinServers(m Metric) string {
	texts := make([]string, 0, len(m.ServedBy))
	for _, by := range m.ServedBy {
		texts = append(texts, c.lang.served[by])
	}
	return strings.Join(texts, c.lang.list)
}

// linkAlerts links to the alerts whose expression has a metric.
func (c content) linkAlerts(m Metric) string {
	var links []string
	for _, a := range c.Alerts {
		if usesMetric(a.Expr, m.Name) {
			links = append(links, fmt.Sprintf("[%s](#%s)", a.Name, a.Anchor))
		}
	}
	return strings.Join(links, " ")
}
