// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/regatta-sh/regatta/controllers/workload/rollout"
)

// leakCounter is the metric cloneset_scale_expectation_leakage, as OpenKruise has it (CS-19): how often a CloneSet was not reconciled
// because the cache did not show the creation or deletion of a pod longer than --expectation-timeout ago.
type leakCounter struct{ *prometheus.CounterVec }

// registerLeaks registers the metric.
func registerLeaks(to prometheus.Registerer) (leakCounter, error) {
	c := leakCounter{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cloneset_scale_expectation_leakage",
		Help: "Times that a CloneSet did not go on since the cache has not shown its writes of pods within --expectation-timeout.",
	}, []string{"namespace", "name"})}
	if err := to.Register(c); err != nil {
		return c, fmt.Errorf("registering cloneset_scale_expectation_leakage: %w", err)
	}
	return c, nil
}

// countLeaksOf returns the option that makes the controller of a kind count in the metric: only CloneSets are
// counted.
func (c leakCounter) countLeaksOf(kind string) []rollout.Option {
	if kind != "CloneSet" {
		return nil
	}
	return []rollout.Option{rollout.WithLeaks(c.addLeak)}
}

// addLeak counts a CloneSet.
func (c leakCounter) addLeak(namespace, name string) { c.WithLabelValues(namespace, name).Inc() }
