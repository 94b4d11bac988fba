// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/expression"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// storedMatches returns the matches of the steps that concern existing pods of any namespace.
func (f renderFacts) storedMatches() (out []match.Stored) {
	if !f.Pods {
		return nil
	}
	for _, m := range f.Stored {
		if _, follows := followed[m.Namespaces]; follows {
			if there := f.having[m.Namespaces]; len(there) > 0 {
				m.Conditions = append([]string{namespaceCondition(there)}, m.Conditions...)
				out = append(out, m)
			}
			continue
		}
		if m.Namespaces != match.WithBudgets || len(f.budgets) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// mostListed is how many namespaces a condition lists: it is part of the expression for all steps.
const mostListed = 100

// namespaceCondition is true for requests in the given namespaces, and for all requests if there are too many to
// list.
func namespaceCondition(namespaces []string) string {
	if len(namespaces) > mostListed {
		return "true"
	}
	return "request.namespace in " + expression.ListLiteral(namespaces)
}

// matchesForOperation returns the matches of the steps that an operation concerns.
func (f renderFacts) matchesForOperation(op string) []match.Stored {
	return slices.DeleteFunc(f.storedMatches(), func(m match.Stored) bool { return !slices.Contains(m.Operations, op) })
}

// concernsOperation reports whether steps or users' rules are about an operation on pods.
func (f renderFacts) concernsOperation(op string) bool {
	return len(f.matchesForOperation(op)) > 0 || slices.ContainsFunc(f.users, func(g protection.Guard) bool { return isPods(g) && slices.Contains(g.Operations, op) })
}

func isPods(g protection.Guard) bool { return g.Group == "" && g.Resource == "pods" }

// podWebhooks returns the entries for operations on pods. Guards that fail closed have separate entries if the installation allows
// requests about pods while no manager answers.
func (f renderFacts) podWebhooks() []admissionv1.ValidatingWebhook {
	var closed []protection.Guard
	rest := f
	if f.PodFailurePolicy != admissionv1.Fail {
		rest.users = nil
		for _, g := range f.users {
			if isPods(g) && g.FailsClosed() {
				closed = append(closed, g)
			} else {
				rest.users = append(rest.users, g)
			}
		}
	}
	var entries []admissionv1.ValidatingWebhook
	add := func(name string, rules []admissionv1.RuleWithOperations, failure admissionv1.FailurePolicyType, conditions ...admissionv1.MatchCondition) {
		if len(rules) == 0 {
			return
		}
		w := f.newValidatingWebhook(name, ValidatePodPath, rules, failure, f.selectAllNamespaces())
		w.MatchConditions = append(w.MatchConditions, admissionv1.MatchCondition{Name: "not-being-deleted", Expression: alive})
		for _, c := range conditions {
			if c.Expression != "" {
				w.MatchConditions = append(w.MatchConditions, c)
			}
		}
		entries = append(entries, w)
	}
	failing := renderFacts{users: closed}
	var direct []protection.Guard // guards that are about more than evictions
	for _, g := range closed {
		if operationCondition(g.Operations) != "" {
			direct = append(direct, g)
		}
	}
	asked := closedCondition(direct)
	add("vpod-fail.kb.io", failing.podRules(), admissionv1.Fail, aboutIt(asked))
	add("vpod.kb.io", rest.podRules(), f.PodFailurePolicy,
		admissionv1.MatchCondition{Name: podsAboutName, Expression: rest.podCondition()}, notAskedClosed(asked))
	return append(entries, f.evictionEntries(failing, rest)...)
}

// podRules returns the rules for operations on pods, without evictions, that steps or users' rules are about.
func (f renderFacts) podRules() (rules []admissionv1.RuleWithOperations) {
	var operations []admissionv1.OperationType
	for _, op := range []string{protection.Delete, protection.Update} {
		if f.concernsOperation(op) {
			operations = append(operations, admissionv1.OperationType(op))
		}
	}
	if len(operations) > 0 {
		rules = append(rules, newRule("", "pods", operations...))
	}
	if f.concernsOperation(protection.Resize) {
		rules = append(rules, newRule("", "pods/resize", admissionv1.Update))
	}
	return rules
}

// evictionEntries returns the entries for evictions: one for the namespaces in which a guard fails closed, and one for
// others.
func (f renderFacts) evictionEntries(failing, rest renderFacts) []admissionv1.ValidatingWebhook {
	evictions := []admissionv1.RuleWithOperations{newRule("", "pods/eviction", admissionv1.Create)}
	var entries []admissionv1.ValidatingWebhook
	closed, everywhere := failing.evictionNamespaces()
	if everywhere || len(closed) > mostNamespaces {
		return append(entries, f.newValidatingWebhook("vpodeviction-fail.kb.io", ValidatePodPath, evictions, admissionv1.Fail, f.selectAllNamespaces()))
	}
	if len(closed) > 0 {
		entries = append(entries, f.newValidatingWebhook("vpodeviction-fail.kb.io", ValidatePodPath, evictions, admissionv1.Fail, f.selectNamespaces(closed)))
	}
	if !rest.concernsOperation(protection.Evict) {
		return entries
	}
	var not []metav1.LabelSelectorRequirement
	if len(closed) > 0 {
		not = append(not, metav1.LabelSelectorRequirement{Key: nameKey, Operator: metav1.LabelSelectorOpNotIn, Values: closed})
	}
	selector := f.selectAllNamespaces(not...)
	if open, everywhere := rest.evictionNamespaces(); !everywhere && len(open) <= mostNamespaces {
		open = slices.DeleteFunc(open, func(ns string) bool { return slices.Contains(closed, ns) })
		if len(open) == 0 && len(closed) > 0 {
			return entries
		}
		selector = f.selectNamespaces(open)
	}
	return append(entries, f.newValidatingWebhook("vpodeviction.kb.io", ValidatePodPath, evictions, f.PodFailurePolicy, selector))
}

// podCondition is true for pods that a step or a user's rule is about.
func (f renderFacts) podCondition() string {
	var parts []string
	for _, m := range f.storedMatches() {
		var operations []string
		if slices.Contains(m.Operations, protection.Delete) {
			operations = append(operations, "DELETE")
		}
		if slices.Contains(m.Operations, protection.Update) || slices.Contains(m.Operations, protection.Resize) {
			operations = append(operations, "UPDATE")
		}
		if len(operations) > 0 {
			parts = append(parts, expression.AllOf(append([]string{fmt.Sprintf("request.operation in %s", expression.ListLiteral(operations))}, m.Conditions...)...))
		}
	}
	size := 0
	for _, g := range f.users {
		if !isPods(g) {
			continue
		}
		on := operationCondition(g.Operations)
		if on == "" {
			continue
		}
		narrow := guardCondition(g)
		if size += len(narrow) + 200; size > widestEntry {
			narrow = "" // the rest is asked about in full
		}
		if part := expression.AllOf(on, narrow); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return expression.AnyOf(parts...)
}

// operationCondition is true for operations on pods. It leaves out evictions, whose object is no pod.
func operationCondition(operations []string) string {
	var parts []string
	for _, op := range operations {
		switch op {
		case protection.Delete:
			parts = append(parts, "request.operation == 'DELETE'")
		case protection.Update:
			parts = append(parts, fmt.Sprintf("(request.operation == 'UPDATE' && %s == '')", subresource))
		case protection.Resize:
			parts = append(parts, fmt.Sprintf("%s == 'resize'", subresource))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return expression.AnyOf(parts...)
}

// evictionNamespaces returns the namespaces, sorted, whose evictions are sent. An Eviction does not
// have the labels of its pod, so only the namespace can be selected.
func (f renderFacts) evictionNamespaces() (namespaces []string, everywhere bool) {
	for _, m := range f.matchesForOperation(protection.Evict) {
		if m.Namespaces == match.All {
			return nil, true
		}
		if _, follows := followed[m.Namespaces]; follows {
			namespaces = slices.Concat(namespaces, f.having[m.Namespaces])
			continue
		}
		namespaces = slices.Concat(namespaces, f.budgets)
	}
	for _, g := range f.users {
		if !isPods(g) || !slices.Contains(g.Operations, protection.Evict) {
			continue
		}
		if len(g.Namespaces) == 0 {
			return nil, true
		}
		for _, ns := range g.Namespaces {
			if resourceName.MatchString(ns) && len(ns) <= 63 {
				namespaces = append(namespaces, ns)
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(namespaces))), false
}

// newPods returns the entries for new pods: one for the namespaces in which all pods concern a step,
// and one for the pods elsewhere that conditions select. No pod is sent twice.
func (f renderFacts) newPods() []admissionv1.MutatingWebhook {
	if !f.Pods {
		return nil
	}
	budgeted := false
	var some []match.Created
	for _, m := range f.Created {
		if _, follows := followed[m.Namespaces]; follows {
			if there := f.having[m.Namespaces]; len(there) > 0 {
				m.Conditions = append([]admissionv1.MatchCondition{{Name: "in-a-namespace-that-has-one", Expression: namespaceCondition(there)}}, m.Conditions...)
				some = append(some, m)
			}
			continue
		}
		if m.Namespaces == match.WithSidecars {
			condition, precision := podscope.CELCondition(f.sidecars)
			if condition == "" {
				continue
			}
			if m.Namespaces = match.All; precision != podscope.Any {
				m.Conditions = append(slices.Clone(m.Conditions), admissionv1.MatchCondition{Name: "a-sidecarset-may-select-it", Expression: condition})
			}
		}
		switch {
		case m.Namespaces == match.WithBudgets && len(f.budgets) == 0:
		case len(m.Conditions) > 0:
			some = append(some, m)
		case m.Namespaces == match.All:
			return []admissionv1.MutatingWebhook{f.newMutatingWebhook("mpod.kb.io", f.selectAllNamespaces())}
		default:
			budgeted = true
		}
	}
	var entries []admissionv1.MutatingWebhook
	rest := f.selectAllNamespaces()
	if budgeted {
		entries = append(entries, f.newMutatingWebhook("mpod.kb.io", f.selectNamespaces(f.budgets)))
		if len(f.budgets) > mostNamespaces {
			return entries
		}
		rest = f.selectAllNamespaces(metav1.LabelSelectorRequirement{Key: nameKey, Operator: metav1.LabelSelectorOpNotIn, Values: f.budgets})
	}
	switch len(some) {
	case 0:
		return entries
	case 1:
		w := f.newMutatingWebhook("mpod-"+some[0].Name+".kb.io", rest)
		w.MatchConditions = some[0].Conditions
		return append(entries, w)
	}
	var parts []string
	for _, m := range some {
		var conditions []string
		for _, c := range m.Conditions {
			conditions = append(conditions, c.Expression)
		}
		parts = append(parts, expression.AllOf(conditions...))
	}
	w := f.newMutatingWebhook(someName, rest)
	w.MatchConditions = stepConditions(expression.AnyOf(parts...))
	return append(entries, w)
}

// someName is the name of the entry for pods that one of several steps is about.
const someName = "mpod-some.kb.io"

func stepConditions(of string) []admissionv1.MatchCondition {
	return []admissionv1.MatchCondition{{Name: "a-step-is-about-it", Expression: of}}
}
