// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// MissingSidecarsMetric is the metric with the number of pods that lack the containers of each SidecarSet, by reason.
type MissingSidecarsMetric struct {
	cached client.Reader
	desc   *prometheus.Desc

	mu   sync.Mutex
	pods map[string]map[string]int
}

// NewMissingSidecarsMetric makes the metric. It drops SidecarSets that the reader does not find.
func NewMissingSidecarsMetric(cached client.Reader) *MissingSidecarsMetric {
	return &MissingSidecarsMetric{cached: cached, pods: map[string]map[string]int{}, desc: prometheus.NewDesc("regatta_sidecarset_missed_pods",
		"How many pods lack the containers of a SidecarSet. Reason NoAnswer: no webhook answered when they were created. "+
			"SidecarSetChanged: it selects them only since a change. PodOlder: they are older than it.",
		[]string{"sidecarset", "reason"}, nil)}
}

// SetCounts sets the numbers of pods for a SidecarSet, by reason.
func (l *MissingSidecarsMetric) SetCounts(set string, pods map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pods[set] = maps.Clone(pods)
}

// Describe implements prometheus.Collector.
func (l *MissingSidecarsMetric) Describe(out chan<- *prometheus.Desc) { out <- l.desc }

// Collect implements prometheus.Collector.
func (l *MissingSidecarsMetric) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, pods := range l.pods {
		if apierrors.IsNotFound(l.cached.Get(context.Background(), client.ObjectKey{Name: name}, &kruise.SidecarSet{})) {
			delete(l.pods, name)
			continue
		}
		for reason, n := range pods {
			out <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, float64(n), name, reason)
		}
	}
}
