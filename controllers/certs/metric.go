// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// ExpiryMetric is the metric with the end of the certificate that this replica serves webhooks with. It has no value before the replica has
// a certificate.
type ExpiryMetric struct{ *prometheus.GaugeVec }

// RegisterExpiry makes the metric and registers it.
func RegisterExpiry(to prometheus.Registerer) (*ExpiryMetric, error) {
	m := &ExpiryMetric{prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "regatta_webhook_certificate_expiry_timestamp_seconds",
		Help: "When the certificate that this replica serves webhooks with ends, in seconds since 1970.",
	}, nil)}
	if err := to.Register(m); err != nil {
		return nil, fmt.Errorf("registering the metric of the end of the certificate: %w", err)
	}
	return m, nil
}

// recordChain sets the metric to the end of the certificate that a chain in PEM begins with. A nil ExpiryMetric records nothing.
func (m *ExpiryMetric) recordChain(chain []byte) {
	if m == nil {
		return
	}
	if leaf, _, err := parseChain(chain); err == nil {
		m.WithLabelValues().Set(float64(leaf.NotAfter.Unix()))
	}
}
