// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/regatta-sh/regatta/controllers/webhook/server"
)

// newWebhookClients are those that webhooks take requests of; nil for all.
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

// measuredClients are clients whose refusals are in the metrics of the manager.
func (o *Options) measuredClients() (*server.Clients, error) {
	c, err := o.newWebhookClients()
	if err != nil {
		return nil, err
	}
	return c, c.RegisterMetric(metrics.Registry)
}
