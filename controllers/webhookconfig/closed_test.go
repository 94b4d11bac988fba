// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// TestARequestIsSentOnceAndToWhatFailsClosed holds that whatever guards there are, a request that one of them is about is sent by
// one entry, and that this entry fails closed if one of those guards does.
func TestARequestIsSentOnceAndToWhatFailsClosed(t *testing.T) {
	conditions := newEvaluator(t)
	resources := [][2]string{{"", "pods"}, {"", "configmaps"}, {"apps.kruise.io", "clonesets"}, {"", "namespaces"}}
	namespaces := []string{"shop", "bank", "games"}
	rapid.Check(t, func(rt *rapid.T) {
		var guards []protection.Guard
		for range rapid.IntRange(1, 4).Draw(rt, "guards") {
			r := rapid.SampledFrom(resources).Draw(rt, "resource")
			g := guard(r[0], r[1], rapid.SliceOfNDistinct(rapid.SampledFrom([]string{protection.Delete, protection.Update, protection.Evict, protection.Resize}), 1, 4, rapid.ID[string]).Draw(rt, "operations")...)
			g.Namespaces = rapid.SliceOfDistinct(rapid.SampledFrom(namespaces), rapid.ID[string]).Draw(rt, "namespaces")
			if rapid.Bool().Draw(rt, "labelled") {
				g.Labels = map[string]string{"tier": "gold"}
			}
			if rapid.Bool().Draw(rt, "closed") {
				g = closed(g)
			}
			guards = append(guards, g)
		}
		f := renderFacts{Config: installation(), gates: allGates(), call: service()}
		f.PodFailurePolicy = rapid.SampledFrom([]admissionv1.FailurePolicyType{admissionv1.Ignore, admissionv1.Fail}).Draw(rt, "pods")
		if rapid.Bool().Draw(rt, "budgets") {
			f.budgets = []string{"bank"}
		}
		f.kinds, f.users, _ = filterGuarded(protection.GuardsOutput{Kinds: someKinds(), Guards: guards}, f.gates, f.Pods)
		r, err := renderWebhooks(f)
		if err != nil {
			rt.Fatal(err)
		}
		for _, resource := range resources {
			for _, operation := range []string{protection.Delete, protection.Update, protection.Evict, protection.Resize} {
				for _, ns := range namespaces {
					for _, labelled := range []map[string]string{{}, {"tier": "gold"}, {"tier": "gold", "policy.kruise.io/delete-protection": "Always"}, {"policy.kruise.io/delete-protection": "Cascading"}} {
						about, closed := concerns(guards, resource, operation, ns, labelled)
						if !about {
							continue
						}
						var by []string
						fails := false
						for _, w := range r.validating {
							if takes(t, rt, w, resource, operation, ns, labelled) && (operation == protection.Evict || conditions.meets(t, w, sentRequest(resource, operation, ns, labelled))) {
								by, fails = append(by, w.Name), fails || *w.FailurePolicy == admissionv1.Fail
							}
						}
						if len(by) != 1 || closed && !fails {
							rt.Fatalf("%s of %v in %s with %v is sent by %q; it must fail closed: %v; the guards are %+v", operation, resource, ns, labelled, by, closed, guards)
						}
					}
				}
			}
		}
	})
}

// concerns reports whether a guard is about a request, and whether one of these fails closed.
func concerns(guards []protection.Guard, resource [2]string, operation, ns string, labelled map[string]string) (about, closed bool) {
	for _, g := range guards {
		if g.Group != resource[0] || g.Resource != resource[1] || !slices.Contains(g.Operations, operation) || len(g.Namespaces) > 0 && !slices.Contains(g.Namespaces, ns) {
			continue
		}
		if (operation == protection.Evict || operation == protection.Resize) && resource[1] != "pods" {
			continue
		}
		if g.Labels != nil && labelled["tier"] != "gold" && operation != protection.Evict {
			continue
		}
		about, closed = true, closed || g.FailsClosed()
	}
	return about, closed
}

// takes reports whether the rules and selectors of an entry select a request.
func takes(t *testing.T, rt *rapid.T, w admissionv1.ValidatingWebhook, resource [2]string, operation, ns string, labelled map[string]string) bool {
	t.Helper()
	what, op := resource[1], admissionv1.OperationType(operation)
	switch operation {
	case protection.Evict:
		what, op = "pods/eviction", admissionv1.Create
	case protection.Resize:
		what, op = "pods/resize", admissionv1.Update
	}
	if !slices.ContainsFunc(w.Rules, func(r admissionv1.RuleWithOperations) bool {
		return slices.Contains(r.APIGroups, resource[0]) && slices.Contains(r.Resources, what) && slices.Contains(r.Operations, op)
	}) {
		return false
	}
	selects := func(by *metav1.LabelSelector, of map[string]string) bool {
		s, err := metav1.LabelSelectorAsSelector(by)
		if err != nil {
			rt.Fatal(err)
		}
		return s.Matches(labels.Set(of))
	}
	return selects(w.NamespaceSelector, map[string]string{nameKey: ns}) && selects(w.ObjectSelector, labelled)
}

// sentRequest is a request as conditions see it.
func sentRequest(resource [2]string, operation, ns string, labelled map[string]string) map[string]any {
	subresource := ""
	if operation == protection.Resize {
		operation, subresource = protection.Update, "resize"
	}
	of := map[string]any{}
	for k, v := range labelled {
		of[k] = v
	}
	object := map[string]any{"metadata": map[string]any{"namespace": ns, "labels": of, "annotations": map[string]any{}}}
	return map[string]any{
		"object": object, "oldObject": object,
		"request": map[string]any{"operation": operation, "namespace": ns, "subResource": subresource, "resource": map[string]any{"group": resource[0], "resource": resource[1]}},
	}
}
