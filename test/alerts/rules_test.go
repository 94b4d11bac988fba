// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/util/annotations"
)

// queries parses expressions and series.
var queries = parser.NewParser(parser.Options{})

// memory keeps series in the order of their samples. It is the storage that expressions are evaluated on.
type memory map[string]*promql.Series

// addSample adds a sample behind those that a series has.
func (m memory) addSample(metric labels.Labels, at time.Time, v float64) {
	key := metric.String()
	if m[key] == nil {
		m[key] = &promql.Series{Metric: metric}
	}
	m[key].Floats = append(m[key].Floats, promql.FPoint{T: at.UnixMilli(), F: v})
}

// loadSeries adds the samples of a series in the words of promtool: one in each interval.
func (m memory) loadSeries(t *testing.T, series string, interval time.Duration) {
	t.Helper()
	metric, values, err := queries.ParseSeriesDesc(series)
	if err != nil {
		t.Fatalf("%s: %v", series, err)
	}
	for i, v := range values {
		if !v.Omitted {
			m.addSample(metric, start.Add(time.Duration(i)*interval), v.Value)
		}
	}
}

// Querier implements storage.Queryable.
func (m memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		return &matching{all: m.selectSeries(matchers), at: -1}
	}}, nil
}

func (m memory) selectSeries(matchers []*labels.Matcher) (out []storage.Series) {
	for _, s := range m {
		matches := true
		for _, one := range matchers {
			matches = matches && one.Matches(s.Metric.Get(one.Name))
		}
		if matches {
			out = append(out, promql.NewStorageSeries(*s))
		}
	}
	return out
}

// matching implements storage.SeriesSet.
type matching struct {
	all []storage.Series
	at  int
}

func (s *matching) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *matching) At() storage.Series                { return s.all[s.at] }
func (s *matching) Err() error                        { return nil }
func (s *matching) Warnings() annotations.Annotations { return nil }

// evaluate evaluates an expression at a time with Prometheus' engine.
func (m memory) evaluate(ctx context.Context, engine *promql.Engine, expr string, at time.Time) (promql.Vector, error) {
	q, err := engine.NewInstantQuery(ctx, m, promql.NewPrometheusQueryOpts(false, 0), expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	if scalar, ok := result.Value.(promql.Scalar); ok {
		return promql.Vector{{T: scalar.T, F: scalar.V}}, nil
	}
	vector, err := result.Vector()
	return append(promql.Vector(nil), vector...), err // the engine uses it again once the query is closed
}

// alertRule evaluates an alert at one time after another, as Prometheus documents it: an alert is active while its expression has a result
// with its labels, and fires once it was for as long as "for" says.
type alertRule struct {
	rulefmt.Rule
	since map[string]time.Time     // by their labels
	fires map[string]labels.Labels // series of ALERTS
}

// evaluateAt evaluates the rule and adds samples of ALERTS for alerts that fire. It returns the annotations of these.
func (r *alertRule) evaluateAt(ctx context.Context, m memory, engine *promql.Engine, at time.Time) ([]map[string]string, error) {
	vector, err := m.evaluate(ctx, engine, r.Expr, at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Alert, err)
	}
	since, fires := map[string]time.Time{}, map[string]labels.Labels{}
	var texts []map[string]string
	for _, s := range vector {
		builder := labels.NewBuilder(s.Metric).Del(model.MetricNameLabel)
		for name, text := range r.Labels {
			builder.Set(name, text)
		}
		builder.Set(labels.AlertName, r.Alert)
		key := builder.Labels().String()
		if _, twice := since[key]; twice {
			return nil, fmt.Errorf("%s: two results have the labels %s", r.Alert, key)
		}
		since[key] = at
		if before, ok := r.since[key]; ok {
			since[key] = before
		}
		if at.Sub(since[key]) < time.Duration(r.For) {
			continue
		}
		fires[key] = builder.Set(model.MetricNameLabel, "ALERTS").Set("alertstate", "firing").Labels()
		m.addSample(fires[key], at, 1)
		expanded, err := r.expandAnnotations(ctx, s, at)
		if err != nil {
			return nil, err
		}
		texts = append(texts, expanded)
	}
	for key, series := range r.fires {
		if _, ok := fires[key]; !ok {
			m.addSample(series, at, math.Float64frombits(value.StaleNaN))
		}
	}
	r.since, r.fires = since, fires
	return texts, nil
}

// expandAnnotations returns the annotations for one result of the expression.
func (r *alertRule) expandAnnotations(ctx context.Context, s promql.Sample, at time.Time) (map[string]string, error) {
	out := map[string]string{}
	data := template.AlertTemplateData(s.Metric.Map(), nil, "", s)
	for name, text := range r.Annotations {
		expanded, err := template.NewTemplateExpander(ctx, "{{$labels := .Labels}}{{$value := .Value}}"+text, r.Alert, data, model.Time(at.UnixMilli()), nil, nil, nil).Expand()
		if err != nil {
			return nil, fmt.Errorf("%s: annotation %s: %w", r.Alert, name, err)
		}
		out[name] = strings.TrimSpace(expanded)
	}
	return out, nil
}
