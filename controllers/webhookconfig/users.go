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

// longestCondition bounds what one guard of a user adds to a condition, and
// widestEntry what a condition may come to: the API server reads expressions of
// up to 100,000 characters.
const (
	longestCondition = 20_000
	widestEntry      = 60_000
)

// distinct sorts guards and leaves out what is there twice.
func distinct(users []protection.Guard) []protection.Guard {
	key := func(g protection.Guard) string { return condition(g) + strings.Join(g.Operations, " ") }
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

// condition is true for requests that a guard is about, of those of its resource
// and its operations. Where it would be too long it says less: the rule is asked
// about more, and decides as it would have.
func condition(g protection.Guard) string {
	var parts []string
	if len(g.Namespaces) > 0 {
		parts = append(parts, fmt.Sprintf("%s in %s", namespace, expression.Literals(g.Namespaces)))
	}
	parts = append(parts, labelled(g.Labels))
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" || len(p) > longestCondition })
	if len(parts) == 0 {
		return ""
	}
	return expression.All(parts...)
}

// others are the entries for guards of kinds other than pods: one, unless its
// condition would be too long.
func (f facts) others() []admissionv1.ValidatingWebhook {
	var entries []admissionv1.ValidatingWebhook
	var guards []protection.Guard
	size := 0
	flush := func() {
		if len(guards) == 0 {
			return
		}
		name := "vguard.kb.io"
		if len(entries) > 0 {
			name = fmt.Sprintf("vguard-%d.kb.io", len(entries)+1)
		}
		w := f.validating(name, ValidateDeletionPath, rulesOf(guards), admissionv1.Ignore, f.everywhere())
		var parts []string
		for _, g := range guards {
			parts = append(parts, expression.All(
				fmt.Sprintf("request.resource.group == %s", expression.Literal(g.Group)),
				fmt.Sprintf("request.resource.resource == %s", expression.Literal(g.Resource)),
				fmt.Sprintf("request.operation in %s", expression.Literals(g.Operations)),
				condition(g)))
		}
		w.MatchConditions = []admissionv1.MatchCondition{
			{Name: "not-being-deleted", Expression: alive},
			{Name: "a-rule-is-about-it", Expression: expression.AnyOf(parts...)},
		}
		if once := f.once(guards); once != "" {
			w.MatchConditions = append(w.MatchConditions, admissionv1.MatchCondition{Name: "not-asked-for-its-label", Expression: once})
		}
		entries, guards, size = append(entries, w), nil, 0
	}
	for _, g := range f.users {
		if isPods(g) {
			continue
		}
		length := len(condition(g)) + 200
		if size+length > widestEntry {
			flush()
		}
		guards, size = append(guards, g), size+length
	}
	flush()
	return entries
}

// once is false for deletions that are asked about for their label anyway: asked
// twice, they would count twice.
func (f facts) once(guards []protection.Guard) string {
	var always, cascading []string
	for _, k := range f.kinds {
		if !slices.ContainsFunc(guards, func(g protection.Guard) bool { return g.Group == k.Group && g.Resource == k.Resource }) {
			continue
		}
		always = append(always, name(k.Group, k.Resource))
		if k.Cascading != "" {
			cascading = append(cascading, name(k.Group, k.Resource))
		}
	}
	if len(always) == 0 {
		return ""
	}
	const (
		label = "oldObject.metadata.?labels['policy.kruise.io/delete-protection'].orValue('')"
		kind  = "(request.resource.group == '' ? request.resource.resource : request.resource.resource + '.' + request.resource.group)"
	)
	parts := []string{fmt.Sprintf("(%s == 'Always' && %s in %s)", label, kind, expression.Literals(always))}
	if len(cascading) > 0 {
		parts = append(parts, fmt.Sprintf("(%s == 'Cascading' && %s in %s)", label, kind, expression.Literals(cascading)))
	}
	return fmt.Sprintf("!(request.operation == 'DELETE' && %s)", expression.AnyOf(parts...))
}

// rulesOf are the operations on resources that guards are about, a rule for each
// resource.
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
		out = append(out, rule(g.Group, g.Resource, operations...))
	}
	return out
}
