// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// Names of the objects that are written.
const (
	// ConfigurationName is the name of a mutating and of a validating configuration.
	ConfigurationName = "kruise-protection-webhook-configuration"
	// PolicyName is the name of the ValidatingAdmissionPolicy and of its binding.
	PolicyName = "kruise-deletion-protection"
	// DeploymentName is the name of the manager's Deployment.
	DeploymentName = "kruise-controller-manager"
)

// Paths of the webhooks.
const (
	MutatePodPath        = "/mutate-pod"
	ValidatePodPath      = "/validate-pod"
	ValidateDeletionPath = "/validate-deletion"
)

// The emergency switch: a label that exempts a namespace from all these webhooks.
const (
	SwitchKey = "policy.kruise.io/protection"
	SwitchOff = "off"
)

// Config has the settings of the installation.
type Config struct {
	// Namespace is the namespace of the manager, which is never guarded.
	Namespace string
	// Pods is gate PodWebhook.
	Pods bool
	// Created and Stored describe the pods that concern the steps of the webhook of
	// pods.
	Created []match.Created
	Stored  []match.Stored
	// PodFailurePolicy is what happens to pods when no manager answers.
	PodFailurePolicy admissionv1.FailurePolicyType
	// TimeoutSeconds is how long the API server waits for a response.
	TimeoutSeconds int32
}

// renderFacts are the facts that the configurations are rendered from.
type renderFacts struct {
	Config
	gates protection.Gates
	kinds []protection.ProtectedKind
	users []protection.Guard
	// budgets are the namespaces that have budgets, sorted.
	budgets []string
	// sidecars describes the pods that SidecarSets may concern.
	sidecars []podscope.Selector
	// claims are the claims that are kept; awaited is their token.
	claims  []podscope.PendingSelector
	awaited string
	// having are the namespaces, sorted, that have objects of other kinds that steps read.
	having map[match.Namespaces][]string
	call   clientConfig
	// configs has the client config for each path; renderWebhooks sets it.
	configs map[string]admissionv1.WebhookClientConfig
}

// withAwaited returns the facts with the objects for which new pods are sent.
func (f renderFacts) withAwaited(a pendingObjectLister) renderFacts {
	f.sidecars, f.claims, f.awaited, f.having = a.reachOfSidecarSets(), a.claims, podscope.ClaimsToken(a.claims), a.having
	return f
}

// mostNamespaces is how many namespaces a selector lists. If more have budgets, it selects all: the
// condition on the annotation of pods still limits the requests.
const mostNamespaces = 500

const (
	nameKey = "kubernetes.io/metadata.name"
	kubeNS  = "kube-system"
)

// GuardsNamespace reports whether requests of a namespace may be sent at all. Requests without a namespace
// always may.
func (c Config) GuardsNamespace(namespace string, labels map[string]string) bool {
	return namespace != kubeNS && namespace != c.Namespace && labels[SwitchKey] != SwitchOff
}

// selectAllNamespaces selects all namespaces but those that are never guarded.
func (f renderFacts) selectAllNamespaces(more ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	never := []string{kubeNS}
	if f.Namespace != kubeNS {
		never = append(never, f.Namespace)
	}
	return &metav1.LabelSelector{MatchExpressions: append([]metav1.LabelSelectorRequirement{
		{Key: nameKey, Operator: metav1.LabelSelectorOpNotIn, Values: never},
		{Key: SwitchKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{SwitchOff}},
	}, more...)}
}

// selectNamespaces selects the given namespaces; all if there are too many to list.
func (f renderFacts) selectNamespaces(namespaces []string) *metav1.LabelSelector {
	if len(namespaces) > mostNamespaces {
		return f.selectAllNamespaces()
	}
	return f.selectAllNamespaces(metav1.LabelSelectorRequirement{Key: nameKey, Operator: metav1.LabelSelectorOpIn, Values: namespaces})
}

var (
	groupName    = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`)
	resourceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
)

// whyNeverGuarded says why a resource is never guarded; empty if it may be.
func whyNeverGuarded(group, resource string) string {
	switch {
	case !groupName.MatchString(group) || len(group) > 253:
		return fmt.Sprintf("%q is no API group", group)
	case !resourceName.MatchString(resource) || len(resource) > 63:
		return fmt.Sprintf("%q is no resource: name one in the plural and in lower case, such as deployments", resource)
	case group == "" && resource == "nodes", group == "coordination.k8s.io" && resource == "leases":
		return resource + " are never guarded, as clusters heal by them"
	case group == "admissionregistration.k8s.io":
		return "the API server never asks about the configuration of admission itself"
	}
	return ""
}

// filterGuarded removes resources that are never guarded from an answer, and says which.
func filterGuarded(a protection.GuardsOutput, gates protection.Gates, pods bool) (kinds []protection.ProtectedKind, users []protection.Guard, left []string) {
	for _, k := range a.Kinds {
		if why := whyNeverGuarded(k.Group, k.Resource); why != "" {
			left = append(left, fmt.Sprintf("the protected kind %s is left out: %s", kubectlName(k.Group, k.Resource), why))
		} else if gates.Deletion {
			kinds = append(kinds, k)
		}
	}
	for _, g := range a.Guards {
		onPods := isPods(g)
		why := whyNeverGuarded(g.Group, g.Resource)
		if !onPods {
			g.Operations = slices.DeleteFunc(slices.Clone(g.Operations), func(op string) bool { return op == protection.Evict || op == protection.Resize })
		}
		switch {
		case why != "":
		case len(g.Operations) == 0:
			why = "only pods can be evicted or resized"
		case onPods && !pods:
			why = "there are no webhooks for pods while the feature gate PodWebhook is off"
		}
		if why != "" {
			left = append(left, fmt.Sprintf("a guard of rule %q about %s is left out: %s", g.Rule, kubectlName(g.Group, g.Resource), why))
			continue
		}
		g.Rule = ""
		users = append(users, g)
	}
	slices.SortFunc(kinds, func(a, b protection.ProtectedKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	})
	slices.Sort(left)
	return kinds, distinctGuards(users), left
}

// kubectlName is the name of a resource in kubectl.
func kubectlName(group, resource string) string {
	return schema.GroupResource{Group: group, Resource: resource}.String()
}
