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

// writtenFor are guards for all that the API server is asked to send, by webhooks that exist, for the guards of some
// namespaces: what a leader needs whose policies of these namespaces do not answer, and that does not know what they
// said to the leader before. The guards have no labels, so more is sent than was, and nothing less.
func writtenFor(namespaces []string, webhooks []admissionv1.ValidatingWebhook) (guards []protection.Guard) {
	for _, ns := range namespaces {
		for i := range webhooks {
			for _, r := range webhooks[i].Rules {
				guards = append(guards, writtenIn(ns, &webhooks[i], r)...)
			}
		}
	}
	return guards
}

// boundWritten bounds guards that were read back. A guard of all namespaces is read back for each of them, and hundreds may be
// unknown when a leader starts: where they have more bytes than guards may share, those about one resource become one.
func boundWritten(guards []protection.Guard) (out []protection.Guard, left []string) {
	size := 0
	for _, g := range guards {
		size += bytesOf(g)
	}
	if size <= longestShared {
		return guards, nil
	}
	var shared sharedGuards
	lacking := 0
	for _, g := range guards {
		if !shared.add(g) {
			lacking++
		}
	}
	if lacking > 0 {
		left = append(left, fmt.Sprintf("%d guards that were configured are left out, whose policies have not answered yet: they are too long together", lacking))
	}
	return shared.guards, left
}

// writtenIn are the guards for a rule of a webhook, if it is there for the guards of a namespace.
func writtenIn(ns string, w *admissionv1.ValidatingWebhook, r admissionv1.RuleWithOperations) (guards []protection.Guard) {
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			g := protection.Guard{Group: group, Resource: resource, Namespaces: []string{ns}}
			// It is one for each guard. Values of labels have no bar.
			about := writtenCondition(w)
			switch base, sub, _ := strings.Cut(resource, "/"); {
			case strings.HasPrefix(w.Name, "vpodeviction"):
				if !selectsByName(w, ns) {
					continue
				}
				g.Resource, g.Operations = base, []string{protection.Evict}
			case strings.HasPrefix(w.Name, "vpod"):
				// A condition that is long may say less than the guards did.
				if about != "" && len(about) < widestEntry-longestCondition && !slices.ContainsFunc(strings.Split(about, "||"), func(s string) bool {
					return strings.Contains(s, inNamespaces) && namesNamespace(s, ns)
				}) {
					continue
				}
				g.Resource, g.Operations = base, operationsOf(r)
				if sub == "resize" {
					g.Operations = []string{protection.Resize}
				}
			case strings.HasPrefix(w.Name, "vguard"):
				part := expression.Literal(group) + " && request.resource.resource == " + expression.Literal(resource) + " "
				if about != "" && !slices.ContainsFunc(strings.Split(about, "||"), func(s string) bool {
					return strings.Contains(s, part) && namesNamespace(s, ns)
				}) {
					continue
				}
				g.Operations = operationsOf(r)
			default:
				continue
			}
			guards = append(guards, g)
		}
	}
	return guards
}

// inNamespaces is how a condition begins that limits a guard to namespaces.
const inNamespaces = namespace + " in ["

// namesNamespace reports whether the condition of a guard is true in a namespace: it names the namespace, or none.
func namesNamespace(condition, ns string) bool {
	_, list, limited := strings.Cut(condition, inNamespaces)
	list, _, _ = strings.Cut(list, "]")
	return !limited || slices.Contains(strings.Split(list, ", "), expression.Literal(ns))
}

// writtenCondition is the condition of a webhook that has those of guards; empty if there is none.
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
