// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// webhook is a webhook as an API server has it: its rules and conditions decide which
// requests are sent to it.
type webhook struct {
	name, path string
	rules      []registrationv1.RuleWithOperations
	conditions []cel.Program
}

// compileWebhooks reads the webhooks whose selector matches the namespace.
func compileWebhooks(namespace labels.Set, mutating []registrationv1.MutatingWebhook, validating []registrationv1.ValidatingWebhook) (change, check []webhook, err error) {
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the conditions of webhooks: %w", err)
	}
	add := func(to *[]webhook, name string, call registrationv1.WebhookClientConfig, rules []registrationv1.RuleWithOperations, where *metav1.LabelSelector, conditions []registrationv1.MatchCondition) error {
		selector, err := metav1.LabelSelectorAsSelector(where)
		if err != nil {
			return fmt.Errorf("reading the namespaces of webhook %s: %w", name, err)
		}
		if !selector.Matches(namespace) {
			return nil
		}
		h := webhook{name: name, path: *call.Service.Path, rules: rules}
		for _, c := range conditions {
			ast, issues := env.Compile(c.Expression)
			if issues.Err() != nil {
				return fmt.Errorf("reading condition %s of webhook %s: %w", c.Name, name, issues.Err())
			}
			program, err := env.Program(ast)
			if err != nil {
				return fmt.Errorf("reading condition %s of webhook %s: %w", c.Name, name, err)
			}
			h.conditions = append(h.conditions, program)
		}
		*to = append(*to, h)
		return nil
	}
	for _, w := range mutating {
		if err := add(&change, w.Name, w.ClientConfig, w.Rules, w.NamespaceSelector, w.MatchConditions); err != nil {
			return nil, nil, err
		}
	}
	for _, w := range validating {
		if err := add(&check, w.Name, w.ClientConfig, w.Rules, w.NamespaceSelector, w.MatchConditions); err != nil {
			return nil, nil, err
		}
	}
	return change, check, nil
}

// rulesMatch reports whether any rule matches a request on pods.
func (h webhook) rulesMatch(operation admissionv1.Operation, sub string) bool {
	resource := "pods"
	if sub != "" {
		resource += "/" + sub
	}
	return slices.ContainsFunc(h.rules, func(r registrationv1.RuleWithOperations) bool {
		return slices.Contains(r.APIGroups, "") && slices.Contains(r.Resources, resource) && slices.Contains(r.Operations, registrationv1.OperationType(operation))
	})
}

// conditionsMatch reports whether all conditions are true for a request.
func (h webhook) conditionsMatch(ctx context.Context, request map[string]any) (bool, error) {
	for _, c := range h.conditions {
		out, _, err := c.ContextEval(ctx, request)
		if err != nil {
			return false, fmt.Errorf("asking whether webhook %s is about a request: %w", h.name, err)
		}
		if out.Value() != true {
			return false, nil
		}
	}
	return true, nil
}
