// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// Metrics count refusals, by the names that OpenKruise gave them (DP-02,
// PUB-11), and exceptions. A nil Metrics counts nothing.
type Metrics struct {
	namespaces, crds, workloads, pods, exemptions *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(to prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append(labels, "username"))
	}
	m := &Metrics{
		namespaces: counter("namespace_deletion_protection", "Deletes of namespaces that were refused.", "name"),
		crds:       counter("crd_deletion_protection", "Deletes of CustomResourceDefinitions that were refused.", "name"),
		workloads:  counter("workload_deletion_protection", "Deletes of workloads that were refused.", "kind_namespace_name"),
		pods:       counter("pod_unavailable_budget", "Requests that would have made a pod unavailable and were refused.", "kind_namespace_name"),
		exemptions: counter("regatta_protection_exemptions_total", "Requests that were let through although a rule refused them.", "resource"),
	}
	for _, c := range []*prometheus.CounterVec{m.namespaces, m.crds, m.workloads, m.pods, m.exemptions} {
		if err := to.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of protection: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) countRefusal(a *Asked, point decision.Name) {
	if m == nil {
		return
	}
	o, user := a.Object, a.Request.User.Name
	switch {
	case point == points.BudgetPoint().Name:
		owner := points.Owner{Kind: "unknown"}
		if o.Owner != nil {
			owner = *o.Owner
		}
		m.pods.WithLabelValues(fmt.Sprintf("%s_%s_%s", owner.Kind, o.Namespace, owner.Name), user).Inc()
	case o.Kind == "Namespace":
		m.namespaces.WithLabelValues(o.Name, user).Inc()
	case o.Kind == "CustomResourceDefinition":
		m.crds.WithLabelValues(o.Name, user).Inc()
	case o.Kind != "Service" && o.Kind != "Ingress":
		m.workloads.WithLabelValues(fmt.Sprintf("%s_%s_%s", o.Kind, o.Namespace, o.Name), user).Inc()
	}
}

func (m *Metrics) countExemption(a *Asked) {
	if m != nil {
		m.exemptions.WithLabelValues(a.Object.Resource, a.Request.User.Name).Inc()
	}
}
