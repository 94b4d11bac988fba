// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
)

// Fields that the API server would default are set here, so that they do not differ when
// configurations are compared.

// clientConfig is how the API server reaches the manager, as the chart sets it for the other webhooks.
type clientConfig struct {
	admissionv1.WebhookClientConfig
}

// callOf returns the client config of the chart's own webhooks.
func callOf(chart *admissionv1.ValidatingWebhookConfiguration) (clientConfig, error) {
	if len(chart.Webhooks) == 0 {
		return clientConfig{}, fmt.Errorf("%s has no webhooks", chart.Name)
	}
	w := &chart.Webhooks[0]
	if len(w.ClientConfig.CABundle) == 0 {
		return clientConfig{}, fmt.Errorf("webhook %s of %s has no caBundle yet", w.Name, chart.Name)
	}
	return clientConfig{*w.ClientConfig.DeepCopy()}, nil
}

// isInCluster reports whether the manager is called by its service, and so runs in the
// cluster.
func (c clientConfig) isInCluster() bool { return c.Service != nil }

// pathConfig returns the client config for a path.
func (c clientConfig) pathConfig(path string) (admissionv1.WebhookClientConfig, error) {
	config := *c.DeepCopy()
	switch {
	case config.Service != nil:
		config.Service.Path = &path
		if config.Service.Port == nil {
			config.Service.Port = ptr.To[int32](443)
		}
	case config.URL != nil:
		u, err := url.Parse(*config.URL)
		if err != nil {
			return config, fmt.Errorf("reading the URL of the chart's webhooks: %w", err)
		}
		u.Path = u.Path[:strings.LastIndex(u.Path, "/")+1] + strings.TrimPrefix(path, "/")
		config.URL = ptr.To(u.String())
	default:
		return config, errors.New("the chart's webhooks have neither a service nor a URL")
	}
	return config, nil
}

func newRule(group, resource string, operations ...admissionv1.OperationType) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}, Scope: ptr.To(admissionv1.AllScopes),
		},
	}
}

func (f renderFacts) newValidatingWebhook(name, path string, rules []admissionv1.RuleWithOperations, failure admissionv1.FailurePolicyType, namespaces *metav1.LabelSelector) admissionv1.ValidatingWebhook {
	return admissionv1.ValidatingWebhook{
		Name: name, ClientConfig: f.configs[path], Rules: rules,
		FailurePolicy: &failure, MatchPolicy: ptr.To(admissionv1.Equivalent),
		NamespaceSelector: namespaces, ObjectSelector: &metav1.LabelSelector{},
		SideEffects: ptr.To(admissionv1.SideEffectClassNoneOnDryRun), TimeoutSeconds: &f.TimeoutSeconds,
		AdmissionReviewVersions: []string{"v1"},
	}
}

func (f renderFacts) newMutatingWebhook(name string, namespaces *metav1.LabelSelector) admissionv1.MutatingWebhook {
	return admissionv1.MutatingWebhook{
		Name: name, ClientConfig: f.configs[MutatePodPath], Rules: []admissionv1.RuleWithOperations{newRule("", "pods", admissionv1.Create)},
		FailurePolicy: &f.PodFailurePolicy, MatchPolicy: ptr.To(admissionv1.Equivalent),
		NamespaceSelector: namespaces, ObjectSelector: &metav1.LabelSelector{},
		SideEffects: ptr.To(admissionv1.SideEffectClassNoneOnDryRun), TimeoutSeconds: &f.TimeoutSeconds,
		AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: ptr.To(admissionv1.NeverReinvocationPolicy),
	}
}

// protectionSelector selects objects whose label has a value.
func protectionSelector(value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: policyv1alpha1.DeletionProtectionKey, Operator: metav1.LabelSelectorOpIn, Values: []string{value}},
	}}
}

// deletionWebhooks returns the entries for labeled objects. The first gets only objects that must
// never be deleted, and fails closed: the label must also protect while no manager runs. The second
// fails open, since it could prevent the cleanup of a namespace.
func (f renderFacts) deletionWebhooks() []admissionv1.ValidatingWebhook {
	var always, cascading []admissionv1.RuleWithOperations
	for _, k := range f.kinds {
		always = append(always, newRule(k.Group, k.Resource, admissionv1.Delete))
		if k.Cascading != "" {
			cascading = append(cascading, newRule(k.Group, k.Resource, admissionv1.Delete))
		}
	}
	var entries []admissionv1.ValidatingWebhook
	add := func(name, value string, rules []admissionv1.RuleWithOperations, failure admissionv1.FailurePolicyType) {
		if len(rules) == 0 {
			return
		}
		w := f.newValidatingWebhook(name, ValidateDeletionPath, rules, failure, f.selectAllNamespaces())
		w.ObjectSelector = protectionSelector(value)
		w.MatchConditions = []admissionv1.MatchCondition{{Name: "not-being-deleted", Expression: alive}}
		if asked := notAskedClosed(f.closedElsewhere()); failure == admissionv1.Ignore && asked.Expression != "" {
			w.MatchConditions = append(w.MatchConditions, asked)
		}
		entries = append(entries, w)
	}
	add("vdeletion-always.kb.io", policyv1alpha1.DeletionProtectionAlways, always, admissionv1.Fail)
	add("vdeletion-cascading.kb.io", policyv1alpha1.DeletionProtectionCascading, cascading, admissionv1.Ignore)
	return entries
}

// rendered has all objects that are written to the API server.
type rendered struct {
	mutating   []admissionv1.MutatingWebhook
	validating []admissionv1.ValidatingWebhook
	// claims are the claims that the mutating webhooks are made for; precision is how exactly they select pods for
	// SidecarSets.
	claims    []podscope.PendingSelector
	precision podscope.Precision
	// policy and binding are nil if they are not needed.
	policy  *admissionv1.ValidatingAdmissionPolicySpec
	binding *admissionv1.ValidatingAdmissionPolicyBindingSpec
}

// isAt reports whether new pods are already sent as wanted.
func (r rendered) isAt(at *present) bool {
	return equality.Semantic.DeepEqual(at.mutating.Webhooks, r.mutating) && at.mutating.Annotations[podscope.Annotation] == podscope.EncodeClaims(r.claims)
}

// pathConfigs returns the client config of each path. The path for new pods identifies the awaited objects.
func (f renderFacts) pathConfigs() (map[string]admissionv1.WebhookClientConfig, error) {
	out := map[string]admissionv1.WebhookClientConfig{}
	for _, path := range []string{MutatePodPath, ValidatePodPath, ValidateDeletionPath} {
		called := path
		if path == MutatePodPath {
			called = podscope.TokenPath(path, f.awaited)
		}
		config, err := f.call.pathConfig(called)
		if err != nil {
			return nil, err
		}
		out[path] = config
	}
	return out, nil
}

// renderWebhooks renders the configurations from the facts alone.
func renderWebhooks(f renderFacts) (rendered, error) {
	var err error
	if f.configs, err = f.pathConfigs(); err != nil {
		return rendered{}, err
	}
	r := rendered{mutating: f.newPods(), claims: f.claims}
	_, r.precision = podscope.CELCondition(f.sidecars)
	r.validating = append(r.validating, f.podWebhooks()...)
	r.validating = append(r.validating, f.deletionWebhooks()...)
	r.validating = append(r.validating, f.otherWebhooks()...)
	r.policy, r.binding = f.fallbackPolicy()
	return r, nil
}
