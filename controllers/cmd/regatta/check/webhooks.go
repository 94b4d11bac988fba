// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhook is one of a webhook configuration of either kind.
type webhook struct {
	configuration, name string
	config              admissionv1.WebhookClientConfig
	// fails is whether a request is refused if the webhook does not answer.
	fails       bool
	rules       []admissionv1.RuleWithOperations
	inNamespace *metav1.LabelSelector
	ofObject    *metav1.LabelSelector
	conditions  int
}

func (w *webhook) objectName() string { return w.configuration }

// findWebhooks returns all webhooks of the cluster.
func (i *inspector) findWebhooks(ctx context.Context) ([]webhook, bool) {
	var out []webhook
	mutating, validating := &admissionv1.MutatingWebhookConfigurationList{}, &admissionv1.ValidatingWebhookConfigurationList{}
	ok := i.listPages(ctx, "webhooks", "MutatingWebhookConfigurations", mutating, func() {
		for n := range mutating.Items {
			for _, w := range mutating.Items[n].Webhooks {
				out = append(out, webhook{
					nameOf("MutatingWebhookConfiguration", "", mutating.Items[n].Name), w.Name, w.ClientConfig,
					w.FailurePolicy == nil || *w.FailurePolicy == admissionv1.Fail, w.Rules, w.NamespaceSelector, w.ObjectSelector, len(w.MatchConditions),
				})
			}
		}
	})
	ok = i.listPages(ctx, "webhooks", "ValidatingWebhookConfigurations", validating, func() {
		for n := range validating.Items {
			for _, w := range validating.Items[n].Webhooks {
				out = append(out, webhook{
					nameOf("ValidatingWebhookConfiguration", "", validating.Items[n].Name), w.Name, w.ClientConfig,
					w.FailurePolicy == nil || *w.FailurePolicy == admissionv1.Fail, w.Rules, w.NamespaceSelector, w.ObjectSelector, len(w.MatchConditions),
				})
			}
		}
	}) && ok
	return out, ok
}

// isAskedAbout reports whether a webhook is called when an object is created, by its rules and selectors.
func (w *webhook) isAskedAbout(p plannedObject, in space) bool {
	resource, scope := p.mapping.Resource, admissionv1.ClusterScope
	if p.isNamespaced() {
		scope = admissionv1.NamespacedScope
	}
	has := func(list []string, want string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, want)
	}
	ruled := slices.ContainsFunc(w.rules, func(r admissionv1.RuleWithOperations) bool {
		return (slices.Contains(r.Operations, admissionv1.OperationAll) || slices.Contains(r.Operations, admissionv1.Create)) &&
			has(r.APIGroups, resource.Group) && has(r.APIVersions, resource.Version) &&
			(has(r.Resources, resource.Resource) || slices.Contains(r.Resources, "*/*")) &&
			(r.Scope == nil || *r.Scope == admissionv1.AllScopes || *r.Scope == scope)
	})
	if !ruled || !matchesLabels(w.ofObject, p.GetLabels()) {
		return false
	}
	switch {
	case p.GetNamespace() == in.labels[corev1.LabelMetadataName]:
		return matchesLabels(w.inNamespace, in.labels)
	case p.isNamespaced():
		return matchesLabels(w.inNamespace, withName(nil, p.GetNamespace()))
	case p.mapping.GroupVersionKind.Kind == "Namespace":
		return matchesLabels(w.inNamespace, withName(p.GetLabels(), p.GetName()))
	}
	return true
}

// matchesLabels returns true for an invalid selector: that is the safer answer.
func matchesLabels(selector *metav1.LabelSelector, set map[string]string) bool {
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || s.Matches(labels.Set(set))
}

// endpointsOf says how many endpoints of a service are ready, and why there are none.
func (i *inspector) endpointsOf(ctx context.Context, namespace, name string) (ready int, why string, err error) {
	service := &corev1.Service{}
	err = i.askServer(ctx, func(ctx context.Context) error {
		return i.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service)
	})
	if apierrors.IsNotFound(err) {
		return 0, "its Service " + namespace + "/" + name + " is not there", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("reading Service %s/%s: %w", namespace, name, err)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return 1, "", nil // it is outside of the cluster
	}
	slicesOf := &discoveryv1.EndpointSliceList{}
	err = i.askServer(ctx, func(ctx context.Context) error {
		return i.List(ctx, slicesOf, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name})
	})
	if err != nil {
		return 0, "", fmt.Errorf("listing EndpointSlices of Service %s/%s: %w", namespace, name, err)
	}
	for _, s := range slicesOf.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready++
			}
		}
	}
	if ready == 0 {
		why = "its Service " + namespace + "/" + name + " has no ready endpoint"
	}
	return ready, why, nil
}

// isOurs reports whether a webhook leads to the manager.
func (i *inspector) isOurs(w *webhook) bool {
	if s := w.config.Service; s != nil {
		return s.Namespace == i.Namespace && s.Name == webhookService
	}
	return strings.Contains(w.configuration, " kruise-")
}

// webhookService is the Service of the manager.
const webhookService = "kruise-webhook-service"

// checkOtherWebhooks reports webhooks that would be called for the installed objects, and that have no endpoint.
func (i *inspector) checkOtherWebhooks(ctx context.Context, planned []plannedObject, in space) {
	hooks, ok := i.findWebhooks(ctx)
	asked := 0
	for n := range hooks {
		w := &hooks[n]
		if i.isOurs(w) || w.config.Service == nil {
			continue
		}
		var about []string
		for _, p := range planned {
			if w.isAskedAbout(p, in) {
				about = append(about, p.displayName())
			}
		}
		if len(about) == 0 {
			continue
		}
		asked++
		s := w.config.Service
		_, why, err := i.endpointsOf(ctx, s.Namespace, s.Name)
		switch {
		case err != nil:
			i.addError("webhooks", w.objectName(), "webhook "+w.name, err)
		case why != "":
			i.addDead(w, about, why)
		}
	}
	if ok {
		i.addFinding(Finding{Fine, "webhooks", "webhooks of others", "rules", fmt.Sprintf("%d are asked about objects of the installation", asked), ""})
	}
}

// addDead adds a finding about a webhook that has no endpoint.
func (i *inspector) addDead(w *webhook, about []string, why string) {
	kind, name, _ := strings.Cut(w.configuration, " ")
	f := Finding{Blocks, "webhooks", w.objectName(), "webhook " + w.name + " failurePolicy", "nothing answers it, so that what it is asked about is refused: " + nameSome(about) + "; " + why,
		fmt.Sprintf("have it answer, or, if what it is of is gone, kubectl delete %s %s", strings.ToLower(kind), name)}
	switch {
	case !w.fails:
		f.Status, f.Message = Warns, "nothing answers it, and it is ignored after its timeout, for "+nameSome(about)+"; "+why
	case w.conditions > 0:
		f.Status, f.Message = Warns, "nothing answers it; if its matchConditions hold, what it is asked about is refused: "+nameSome(about)+"; "+why
	}
	i.addFinding(f)
}
