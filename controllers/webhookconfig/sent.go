// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Webhooks are the webhooks of protection, as in webhook configurations.
type Webhooks struct {
	Mutating   []admissionv1.MutatingWebhook
	Validating []admissionv1.ValidatingWebhook
}

// RenderWebhooks returns the webhooks that the configurations of an installation would have now, with
// budgets in some namespaces. A simulation calls them in place of an API server.
func (r *Rules) RenderWebhooks(ctx context.Context, config Config, budgets []string) (Webhooks, error) {
	answer := r.RefreshAnswer(ctx)
	if !answer.Known {
		return Webhooks{}, fmt.Errorf("no policy says what is protected: %s", answer.Failure)
	}
	service := clientConfig{admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: config.Namespace, Name: "kruise-webhook-service"}}}
	f, _ := r.gatherFacts(answer, config, budgets, service)
	all, err := renderWebhooks(f)
	return Webhooks{Mutating: all.mutating, Validating: all.validating}, err
}

// gatherFacts returns the facts to render from, and what is left out of an answer.
func (r *Rules) gatherFacts(answer Answer, config Config, budgets []string, c clientConfig) (f renderFacts, left []string) {
	f = renderFacts{Config: config, gates: r.FeatureGates(), budgets: budgets, call: c}
	f.kinds, f.users, left = filterGuarded(answer.GuardsOutput, f.gates, f.Pods)
	return f, left
}
