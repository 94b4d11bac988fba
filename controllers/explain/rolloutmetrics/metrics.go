// SPDX-License-Identifier: Apache-2.0

// Package rolloutmetrics has the metrics of rollouts: what the pods of each workload are doing, which rules hold them, and how long
// rollouts take.
package rolloutmetrics

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Metrics are the metrics of the rollouts in a Store.
type Metrics struct {
	rounds     *explain.Store
	pods, held *prometheus.Desc
	moved      *prometheus.CounterVec
	duration   *prometheus.HistogramVec

	mu       sync.Mutex
	rollouts map[string]rollout // by the UID of the workload
}

// rollout is what is remembered of a workload from one round to the next.
type rollout struct {
	revision string
	rolling  bool
	// began is zero if the rollout began before this process saw the workload.
	began time.Time
}

// RegisterMetrics makes the metrics of the rollouts that a Store gets, and registers them.
func RegisterMetrics(to prometheus.Registerer, rounds *explain.Store) error {
	workload := []string{"kind", "namespace", "name"}
	m := &Metrics{
		rounds: rounds, rollouts: map[string]rollout{},
		pods: prometheus.NewDesc("regatta_rollout_pods",
			"Pods of a workload by what the last round decided about them. A SidecarSet has no namespace.", append(workload[:3:3], "verdict"), nil),
		held: prometheus.NewDesc("regatta_rollout_held_pods",
			"Pods of a workload whose update a rule holds, by the rule.", append(workload[:3:3], "rule"), nil),
		moved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "regatta_rollout_moved_pods_total", Help: "Pods whose update was started.",
		}, []string{"kind"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "regatta_rollout_duration_seconds",
			Help:    "How long rollouts took, in seconds, from the first round with an outdated pod until all pods that are to be updated are, and are available.",
			Buckets: []float64{10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600},
		}, []string{"kind"}),
	}
	if err := to.Register(m); err != nil {
		return fmt.Errorf("registering the metrics of rollouts: %w", err)
	}
	rounds.AddObserver(m)
	return nil
}

// ObserveRound implements explain.RoundObserver.
func (m *Metrics) ObserveRound(subject decision.Subject, r explain.Round) {
	round, ok := r.(explain.RoundWithProgress)
	if !ok {
		return
	}
	p := round.MeasureProgress()
	if p.Moved > 0 {
		m.moved.WithLabelValues(subject.Kind).Add(float64(p.Moved))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, known := m.rollouts[subject.UID]
	if now.rolling && p.Outdated == 0 && p.Revision != now.revision {
		now.rolling = false // undone before any pod was updated
	}
	if p.Outdated > 0 && (!now.rolling || now.revision != p.Revision) {
		now.rolling, now.began = true, time.Time{}
		if known {
			now.began = p.At
		}
	}
	if now.rolling && p.Complete {
		if !now.began.IsZero() {
			m.duration.WithLabelValues(subject.Kind).Observe(p.At.Sub(now.began).Seconds())
		}
		now.rolling = false
	}
	now.revision = p.Revision
	m.rollouts[subject.UID] = now
}

// ForgetWorkload implements explain.RoundObserver.
func (m *Metrics) ForgetWorkload(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rollouts, uid)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.pods
	out <- m.held
	m.moved.Describe(out)
	m.duration.Describe(out)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.moved.Collect(out)
	m.duration.Collect(out)
	m.rounds.ForEachRound(func(subject decision.Subject, r explain.Round) {
		round, ok := r.(explain.RoundWithProgress)
		if !ok {
			return
		}
		send := func(desc *prometheus.Desc, pods int, label string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(pods), subject.Kind, subject.Namespace, subject.Name, label)
		}
		verdicts, reasons := round.TallyPods()
		for _, verdict := range explain.PodVerdicts() { // also those that no pod has: a change from none is one
			send(m.pods, verdicts[verdict], string(verdict))
		}
		for rule, pods := range countHeldByRule(reasons) {
			send(m.held, pods, rule)
		}
	})
}

// Bounds of the labels that policies choose: how many rules of a workload have a value of their own, and the bytes of a rule.
const (
	maxRules     = 10
	maxRuleBytes = 128
	otherRules   = "(others)"
)

// countHeldByRule counts the pods that rules hold. The reasons begin with the most frequent one.
func countHeldByRule(reasons []explain.ReasonCount) map[string]int {
	out := map[string]int{}
	for _, r := range reasons {
		if r.Verdict != explain.Held || r.Rule == "" {
			continue
		}
		rule := decision.TruncateText(strings.ToValidUTF8(r.Rule, "?"), maxRuleBytes)
		if _, known := out[rule]; !known && len(out) >= maxRules {
			rule = otherRules
		}
		out[rule] += r.Pods
	}
	return out
}
