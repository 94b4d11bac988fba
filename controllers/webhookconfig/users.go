// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/regatta-sh/regatta/controllers/webhookconfig/expression"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// longestCondition bounds the condition of one guard of a user, and widestEntry the condition of an
// entry: the API server accepts expressions of up to 100,000 characters.
const (
	longestCondition = 20_000
	widestEntry      = 60_000
)

// distinctGuards sorts guards and removes duplicates.
func distinctGuards(users []protection.Guard) []protection.Guard {
	key := func(g protection.Guard) string {
		return guardCondition(g) + strings.Join(g.Operations, " ") + g.FailurePolicy
	}
	for i, g := range users {
		users[i].Operations = slices.Compact(slices.Sorted(slices.Values(g.Operations)))
		users[i].Namespaces = slices.Compact(slices.Sorted(slices.Values(g.Namespaces)))
	}
	slices.SortFunc(users, func(a, b protection.Guard) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(key(a), key(b)))
	})
	return slices.CompactFunc(users, func(a, b protection.Guard) bool {
		return a.Group == b.Group && a.Resource == b.Resource && key(a) == key(b)
	})
}

// guardCondition is true for requests that a guard is about, of those of its resource
// and its operations. A condition that would be too long is made less exact: more requests are sent,
// and the rule decides about them in the same way.
func guardCondition(g protection.Guard) string {
	var parts []string
	if len(g.Namespaces) > 0 {
		parts = append(parts, fmt.Sprintf("%s in %s", namespace, expression.ListLiteral(g.Namespaces)))
	}
	parts = append(parts, labelsCondition(g.Labels))
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" || len(p) > longestCondition })
	if len(parts) == 0 {
		return ""
	}
	return expression.AllOf(parts...)
}

// otherWebhooks returns the entries for guards of kinds other than pods: one for those that fail closed, and one for the rest, or
// several if a condition would be too long.
func (f renderFacts) otherWebhooks() []admissionv1.ValidatingWebhook {
	var entries []admissionv1.ValidatingWebhook
	var guards []protection.Guard
	closed, asked := f.closedGuards(), f.closedElsewhere()
	add := func(name string, guards []protection.Guard, failure admissionv1.FailurePolicyType, conditions ...admissionv1.MatchCondition) {
		w := f.newValidatingWebhook(name, ValidateDeletionPath, rulesOf(guards), failure, f.selectAllNamespaces())
		w.MatchConditions = append(w.MatchConditions, admissionv1.MatchCondition{Name: "not-being-deleted", Expression: alive})
		for _, c := range conditions {
			if c.Expression != "" {
				w.MatchConditions = append(w.MatchConditions, c)
			}
		}
		entries = append(entries, w)
	}
	if len(closed) > 0 {
		add("vguard-fail.kb.io", closed, admissionv1.Fail, aboutIt(asked), admissionv1.MatchCondition{Name: "not-asked-for-its-label", Expression: f.onceOnlyCondition(closed, false)})
	}
	size := 0
	flush := func() {
		if len(guards) == 0 {
			return
		}
		name := "vguard.kb.io"
		if n := len(entries) - min(len(closed), 1); n > 0 {
			name = fmt.Sprintf("vguard-%d.kb.io", n+1)
		}
		var parts []string
		for _, g := range guards {
			parts = append(parts, resourceCondition(g, guardCondition(g)))
		}
		add(name, guards, admissionv1.Ignore, aboutIt(expression.AnyOf(parts...)), admissionv1.MatchCondition{Name: "not-asked-for-its-label", Expression: f.onceOnlyCondition(guards, true)}, notAskedClosed(asked))
		guards, size = nil, 0
	}
	for _, g := range f.users {
		if isPods(g) || g.FailsClosed() {
			continue
		}
		length := len(resourceCondition(g, guardCondition(g))) + len(" || ")
		if size+length > widestEntry {
			flush()
		}
		guards, size = append(guards, g), size+length
	}
	flush()
	return entries
}

// Names of the conditions that combine those of guards.
const (
	aboutName     = "a-rule-is-about-it"
	podsAboutName = "a-budget-or-a-rule-is-about-it"
)

func aboutIt(expression string) admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: aboutName, Expression: expression}
}

// resourceCondition is true for requests that a guard of another kind than pods is about.
func resourceCondition(g protection.Guard, narrow string) string {
	return expression.AllOf(
		fmt.Sprintf("request.resource.group == %s", expression.TextLiteral(g.Group)),
		fmt.Sprintf("request.resource.resource == %s", expression.TextLiteral(g.Resource)),
		fmt.Sprintf("request.operation in %s", expression.ListLiteral(g.Operations)),
		narrow)
}

// widestClosed is how long the conditions of guards that fail closed may be together. They are part of the conditions of other
// entries.
const widestClosed = 15_000

// closedCondition is true for requests that one of the guards is about. A condition that would be too long is made less exact,
// and empty in the end.
func closedCondition(guards []protection.Guard) string {
	var parts []string
	size := 0
	for _, g := range guards {
		narrow := guardCondition(g)
		if size += len(narrow); size > widestClosed {
			narrow = "" // the rest is asked about in full
		}
		part := resourceCondition(g, narrow)
		if isPods(g) {
			part = expression.AllOf(operationCondition(g.Operations), narrow)
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if all := expression.AnyOf(parts...); len(parts) > 0 && len(all) <= 2*widestClosed {
		return all
	}
	return ""
}

// notAskedClosed is false for requests that are sent by the entry of guards that fail closed: a request that is sent twice
// would count twice. If that entry has no condition, requests are sent twice all the same.
func notAskedClosed(asked string) admissionv1.MatchCondition {
	c := admissionv1.MatchCondition{Name: "not-asked-to-fail-closed"}
	if asked != "" {
		c.Expression = "!(" + asked + ")"
	}
	return c
}

// closedGuards returns the guards of kinds other than pods that fail closed.
func (f renderFacts) closedGuards() (guards []protection.Guard) {
	for _, g := range f.users {
		if !isPods(g) && g.FailsClosed() {
			guards = append(guards, g)
		}
	}
	return guards
}

// closedElsewhere is true for requests that the entry of these guards sends.
func (f renderFacts) closedElsewhere() string { return closedCondition(f.closedGuards()) }

// onceOnlyCondition is false for deletions that are sent for their label anyway: a request that is
// sent twice would count twice. Deletions of objects with the label Cascading are allowed while no
// manager answers, so guards that fail closed send them themselves.
func (f renderFacts) onceOnlyCondition(guards []protection.Guard, failOpen bool) string {
	var always, cascading []string
	for _, k := range f.kinds {
		if !slices.ContainsFunc(guards, func(g protection.Guard) bool { return g.Group == k.Group && g.Resource == k.Resource }) {
			continue
		}
		always = append(always, kubectlName(k.Group, k.Resource))
		if k.Cascading != "" && failOpen {
			cascading = append(cascading, kubectlName(k.Group, k.Resource))
		}
	}
	if len(always) == 0 {
		return ""
	}
	const (
		label = "oldObject.metadata.?labels['policy.kruise.io/delete-protection'].orValue('')"
		kind  = "(request.resource.group == '' ? request.resource.resource : request.resource.resource + '.' + request.resource.group)"
	)
	parts := []string{fmt.Sprintf("(%s == 'Always' && %s in %s)", label, kind, expression.ListLiteral(always))}
	if len(cascading) > 0 {
		parts = append(parts, fmt.Sprintf("(%s == 'Cascading' && %s in %s)", label, kind, expression.ListLiteral(cascading)))
	}
	return fmt.Sprintf("!(request.operation == 'DELETE' && %s)", expression.AnyOf(parts...))
}

// rulesOf returns the operations on resources that guards are about, a rule for each resource.
func rulesOf(guards []protection.Guard) []admissionv1.RuleWithOperations {
	var out []admissionv1.RuleWithOperations
	for _, g := range guards {
		var operations []admissionv1.OperationType
		for _, op := range g.Operations {
			operations = append(operations, admissionv1.OperationType(op))
		}
		last := len(out) - 1
		if last >= 0 && out[last].APIGroups[0] == g.Group && out[last].Resources[0] == g.Resource {
			out[last].Operations = slices.Compact(slices.Sorted(slices.Values(append(out[last].Operations, operations...))))
			continue
		}
		out = append(out, newRule(g.Group, g.Resource, operations...))
	}
	return out
}
