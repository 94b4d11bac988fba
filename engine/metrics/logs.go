// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/regatta-sh/regatta/engine/record/sink"
)

// Logs collects the counts of sinks of records.
type Logs struct {
	sinks   []*sink.Sink
	records *prometheus.Desc
}

// NewLogs makes a collector of sinks, whose names must differ.
func NewLogs(sinks ...*sink.Sink) *Logs {
	return &Logs{sinks: sinks, records: prometheus.NewDesc("regatta_decision_log_records_total",
		"Records of decisions, by where they are sent and by what became of them: written, dropped for want of room, or failed.", []string{"sink", "result"}, nil)}
}

// Describe implements prometheus.Collector.
func (l *Logs) Describe(to chan<- *prometheus.Desc) { to <- l.records }

// Collect implements prometheus.Collector.
func (l *Logs) Collect(to chan<- prometheus.Metric) {
	for _, s := range l.sinks {
		stats := s.CurrentStats()
		for result, n := range map[string]uint64{"written": stats.Written, "dropped": stats.Dropped, "failed": stats.Failed} {
			to <- prometheus.MustNewConstMetric(l.records, prometheus.CounterValue, float64(n), s.Name(), result)
		}
	}
}
