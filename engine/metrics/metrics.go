// SPDX-License-Identifier: Apache-2.0

// Package metrics has Prometheus metrics of the decisions of an engine.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Collector is a sink and an observer of an engine, an observer of shadow.Runner, and a collector of a
// registry.
type Collector struct {
	decisions *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	stuck     *prometheus.GaugeVec
	rollbacks *prometheus.CounterVec
	withheld  *prometheus.GaugeVec
	throttled *prometheus.CounterVec
	active    *prometheus.GaugeVec
	shadows   *prometheus.CounterVec
}

// New makes a collector.
func New() *Collector {
	return &Collector{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "regatta_decisions_total", Help: "Decisions, by point and by outcome; all but Decided answered with the fallback.",
		}, []string{"point", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "regatta_decision_seconds", Help: "How long decisions took, waiting included.",
			Buckets: prometheus.ExponentialBuckets(0.00005, 4, 9), // 50 us to 3 s
		}, []string{"point"}),
		stuck: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "regatta_evaluations_stuck", Help: "Evaluations that go on after they were cancelled.",
		}, []string{"point"}),
		rollbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "regatta_rollbacks_total", Help: "Times that bundles were rolled back because decisions did not end in time; namespace is empty for the platform's.",
		}, []string{"namespace"}),
		withheld: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "regatta_bundles_withheld", Help: "1 for each bundle that was rolled back and that nothing replaces: decisions that it takes part in are refused or held until it is changed or deleted; namespace is empty for the platform's.",
		}, []string{"namespace", "bundle"}),
		throttled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "regatta_decisions_throttled_total", Help: "Decisions that were fallbacks because the policies of the namespace's own people took too much of the processors.",
		}, []string{"namespace", "point"}),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "regatta_policies_active", Help: "1 for the revision of all policies that decides.",
		}, []string{"revision"}),
		shadows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "regatta_shadow_decisions_total",
			Help: "Live decisions that a bundle in shadow made again, by result: same, stricter, looser, changed, error, or skipped for lack of time or because policies were changing. None is acted on.",
		}, []string{"bundle", "point", "result"}),
	}
}

// EngineOptions returns the options that add the collector to an engine.
func (c *Collector) EngineOptions() []engine.Option {
	return []engine.Option{engine.WithSink(c), engine.WithObserver(c)}
}

// RecordDecision implements engine.Sink.
func (c *Collector) RecordDecision(r decision.Record) {
	if r.Point == engine.RollbackPoint {
		return
	}
	c.decisions.WithLabelValues(string(r.Point), string(r.Outcome)).Inc()
	c.seconds.WithLabelValues(string(r.Point)).Observe(r.Duration.Seconds())
}

// RevisionActivated implements engine.Observer.
func (c *Collector) RevisionActivated(revision string) {
	c.active.Reset()
	c.active.WithLabelValues(bundle.ShortRevision(revision)).Set(1)
}

// EvaluationStuck implements engine.Observer.
func (c *Collector) EvaluationStuck(point decision.Name, delta int) {
	c.stuck.WithLabelValues(string(point)).Add(float64(delta))
}

// DecisionThrottled implements engine.Observer.
func (c *Collector) DecisionThrottled(namespace string, point decision.Name) {
	c.throttled.WithLabelValues(namespace, string(point)).Inc()
}

// RolledBack implements engine.Observer.
func (c *Collector) RolledBack(r engine.Rollback) { c.rollbacks.WithLabelValues(r.Namespace).Inc() }

// BundlesWithheld implements engine.Observer.
func (c *Collector) BundlesWithheld(bundles bundle.Set) {
	c.withheld.Reset()
	for _, b := range bundles {
		c.withheld.WithLabelValues(b.Namespace, b.Name).Set(1)
	}
}

// ShadowCompared implements record.ShadowObserver.
func (c *Collector) ShadowCompared(name string, point decision.Name, result string) {
	c.shadows.WithLabelValues(name, string(point), result).Inc()
}

// ShadowDropped implements record.ShadowObserver.
func (c *Collector) ShadowDropped(name string) {
	c.shadows.DeletePartialMatch(prometheus.Labels{"bundle": name})
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.allCollectors() {
		m.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, m := range c.allCollectors() {
		m.Collect(to)
	}
}

func (c *Collector) allCollectors() []prometheus.Collector {
	return []prometheus.Collector{c.decisions, c.seconds, c.stuck, c.rollbacks, c.withheld, c.throttled, c.active, c.shadows}
}
