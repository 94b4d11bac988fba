// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/regatta-sh/regatta/controllers/webhook/server"
)

// newWebhookClients returns the clients that webhooks accept requests from; nil for all.
func (o *Options) newWebhookClients() (*server.Clients, error) {
	if o.WebhookClientCAFile == "" {
		return nil, nil
	}
	c, err := server.NewClients(o.WebhookClientCAFile, o.WebhookClientNames)
	if err != nil {
		return nil, fmt.Errorf("--webhook-client-ca-file: %w", err)
	}
	return c, nil
}

// measuredClients returns these clients, and registers the metric of their refusals.
func (o *Options) measuredClients() (*server.Clients, error) {
	c, err := o.newWebhookClients()
	if err != nil {
		return nil, err
	}
	return c, c.RegisterMetric(metrics.Registry)
}
