// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/regatta-sh/regatta/controllers/webhookconfig/expression"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// writtenFor returns guards for all requests that existing webhooks send for guards of some namespaces. A new leader
// needs these if the policies of these namespaces do not answer, since it does not have their answer to the previous
// leader. The guards have no labels, so more requests are sent than before, never fewer.
func writtenFor(namespaces []string, webhooks []admissionv1.ValidatingWebhook) (guards []protection.Guard) {
	literals := make([]string, len(namespaces))
	for i, ns := range namespaces {
		literals[i] = expression.TextLiteral(ns)
	}
	for i := range webhooks {
		clauses := clausesOf(&webhooks[i]) // parsed once: a condition is long, and there may be hundreds of rules and namespaces
		for _, r := range webhooks[i].Rules {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					g, asks := writtenGuard(&webhooks[i], clauses, group, resource, r)
					if asks == nil {
						continue
					}
					for j, ns := range namespaces {
						if asks(ns, literals[j]) {
							guards = append(guards, protection.Guard{Group: g.Group, Resource: g.Resource, Operations: slices.Clone(g.Operations), Namespaces: []string{ns}})
						}
					}
				}
			}
		}
	}
	return guards
}

// boundWritten bounds guards that were read back. A guard of all namespaces is read back for each of them, and hundreds may be
// unknown when a leader starts: if they have more than longestShared bytes, guards about one resource are merged. others are the
// other guards. The guards that were read back may take all room that the others leave: that many resources had guards before, and
// requests for a guard that is left out are not sent any more.
func boundWritten(guards, others []protection.Guard) (out []protection.Guard, left []string) {
	size := 0
	for _, g := range guards {
		size += bytesOf(g)
	}
	if size <= longestShared {
		return guards, nil
	}
	room := longestOwned + longestShared
	for _, g := range others {
		room -= bytesOf(g)
	}
	shared, lacking := sharedGuards{most: max(room, longestShared)}, 0
	for _, g := range guards {
		if !shared.addGuard(g) {
			lacking++
		}
	}
	if lacking > 0 {
		left = append(left, fmt.Sprintf("%d guards that were configured are left out, whose policies have not answered yet: they are too long together", lacking))
	}
	return shared.guards, left
}

// writtenGuard returns the guard for a resource of a rule of a webhook, without namespaces, and a function that reports whether the
// webhook covers a namespace, by its name and its literal. asks is nil if the webhook is not for guards.
func writtenGuard(w *admissionv1.ValidatingWebhook, clauses []clause, group, resource string, r admissionv1.RuleWithOperations) (g protection.Guard, asks func(ns, literal string) bool) {
	base, sub, _ := strings.Cut(resource, "/")
	g = protection.Guard{Group: group, Resource: base, Operations: operationsOf(r)}
	everywhere := func(string, string) bool { return true }
	of := func(is func(clause) bool) func(string, string) bool {
		some := slices.DeleteFunc(slices.Clone(clauses), func(c clause) bool { return !is(c) })
		return func(_, literal string) bool {
			return slices.ContainsFunc(some, func(c clause) bool { return c.namesNamespace(literal) })
		}
	}
	about := writtenCondition(w)
	switch {
	case strings.HasPrefix(w.Name, "vpodeviction"):
		g.Operations = []string{protection.Evict}
		return g, func(ns, _ string) bool { return selectsByName(w, ns) }
	case strings.HasPrefix(w.Name, "vpod"):
		if sub == "resize" {
			g.Operations = []string{protection.Resize}
		}
		// A long condition may be less exact than the guards were.
		if about == "" || len(about) >= widestEntry-longestCondition {
			return g, everywhere
		}
		return g, of(func(c clause) bool { return c.namespaces != nil })
	case strings.HasPrefix(w.Name, "vguard"):
		g.Resource = resource
		if about == "" {
			return g, everywhere
		}
		// The condition has one clause for each guard. Values of labels have no bar.
		part := expression.TextLiteral(group) + " && request.resource.resource == " + expression.TextLiteral(resource) + " "
		return g, of(func(c clause) bool { return strings.Contains(c.text, part) })
	}
	return g, nil
}

// inNamespaces is the beginning of a condition that limits a guard to namespaces.
const inNamespaces = namespace + " in ["

// clause is one of the alternatives of a condition.
type clause struct {
	text string
	// namespaces are the literals of the namespaces in the clause; nil if it is for all.
	namespaces map[string]bool
}

// namesNamespace reports whether the clause is for a namespace.
func (c clause) namesNamespace(literal string) bool {
	return c.namespaces == nil || c.namespaces[literal]
}

// clausesOf returns the clauses of the condition of a webhook that combines those of guards.
func clausesOf(w *admissionv1.ValidatingWebhook) (out []clause) {
	for text := range strings.SplitSeq(writtenCondition(w), "||") {
		c := clause{text: text}
		if _, list, limited := strings.Cut(text, inNamespaces); limited {
			list, _, _ = strings.Cut(list, "]")
			c.namespaces = map[string]bool{}
			for literal := range strings.SplitSeq(list, ", ") {
				c.namespaces[literal] = true
			}
		}
		out = append(out, c)
	}
	return out
}

// writtenCondition returns the condition of a webhook that combines those of guards; empty if there is none.
func writtenCondition(w *admissionv1.ValidatingWebhook) string {
	for _, c := range w.MatchConditions {
		if c.Name == aboutName || c.Name == podsAboutName {
			return c.Expression
		}
	}
	return ""
}

// selectsByName reports whether a webhook is for all namespaces or names one.
func selectsByName(w *admissionv1.ValidatingWebhook, ns string) bool {
	if w.NamespaceSelector == nil {
		return true
	}
	for _, e := range w.NamespaceSelector.MatchExpressions {
		if e.Key == nameKey && (e.Operator == "In") != slices.Contains(e.Values, ns) {
			return false
		}
	}
	return true
}

func operationsOf(r admissionv1.RuleWithOperations) (out []string) {
	for _, op := range r.Operations {
		out = append(out, string(op))
	}
	return out
}
