package guards

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/engine/decision"
)

// budgeted is true for pods that their budget may hold back: one that is ready,
// or else nobody loses it. Conditions that the API server can tell alone are all
// here; it compares specs, so that writers of statuses and labels never wait.
const (
	inBudget = "oldObject.metadata.?annotations.orValue({}).exists(k, k in ['pub.kruise.io/related-pub', 'kruise.io/related-pub'])"
	// What Go reads as true, since that is what the annotation is.
	protects = "!(oldObject.metadata.?annotations['pub.kruise.io/no-protect'].orValue('') in ['1', 't', 'T', 'true', 'TRUE', 'True'])"
	ready    = "oldObject.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True')"
	changes  = "(request.operation == 'DELETE' || object.spec != oldObject.spec || " +
		"object.metadata.?labels.orValue({}).exists(k, k.startsWith('unavailable-pod.kruise.io/') && !(k in oldObject.metadata.?labels.orValue({}))))"
	ownedByUs = "object.metadata.?ownerReferences.orValue([]).exists(o, o.apiVersion.startsWith('apps.kruise.io/'))"
	// The controller of CloneSets gives its pods the gate when it makes them.
	ungated = "!object.spec.?readinessGates.orValue([]).exists(g, g.conditionType == 'KruisePodReady')"
)

// counts says whether budgets hold back an operation at all.
func (f facts) counts(op string) bool {
	if !f.Pods || len(f.budgets) == 0 {
		return false
	}
	if op == decision.Delete || op == decision.Evict {
		return f.gates.BudgetDelete
	}
	return f.gates.BudgetUpdate
}

// asked are the operations on pods that budgets or users' rules are about.
func (f facts) asked(op string) bool {
	return f.counts(op) || slices.ContainsFunc(f.users, func(g decision.Guard) bool { return isPods(g) && slices.Contains(g.Operations, op) })
}

func isPods(g decision.Guard) bool { return g.Group == "" && g.Resource == "pods" }

func (f facts) pods() []admissionv1.ValidatingWebhook {
	var rules []admissionv1.RuleWithOperations
	var operations []admissionv1.OperationType
	for _, op := range []string{decision.Delete, decision.Update} {
		if f.asked(op) {
			operations = append(operations, admissionv1.OperationType(op))
		}
	}
	if len(operations) > 0 {
		rules = append(rules, rule("", "pods", operations...))
	}
	if f.asked(decision.Resize) {
		rules = append(rules, rule("", "pods/resize", admissionv1.Update))
	}
	var entries []admissionv1.ValidatingWebhook
	if len(rules) > 0 {
		w := f.validating("vpod.kb.io", ValidatePodPath, rules, f.PodFailurePolicy, f.everywhere())
		w.MatchConditions = []admissionv1.MatchCondition{
			{Name: "not-being-deleted", Expression: alive},
			{Name: "a-budget-or-a-rule-is-about-it", Expression: f.podCondition()},
		}
		entries = append(entries, w)
	}
	if f.asked(decision.Evict) {
		entries = append(entries, f.validating("vpodeviction.kb.io", ValidatePodPath,
			[]admissionv1.RuleWithOperations{rule("", "pods/eviction", admissionv1.Create)}, f.PodFailurePolicy, f.evictions()))
	}
	return entries
}

// podCondition is true for pods that a budget or a user's rule is about.
func (f facts) podCondition() string {
	var parts []string
	var operations []string
	if f.counts(decision.Delete) {
		operations = append(operations, "DELETE")
	}
	if f.counts(decision.Update) {
		operations = append(operations, "UPDATE")
	}
	if len(operations) > 0 {
		parts = append(parts, all(fmt.Sprintf("request.operation in %s", literals(operations)), inBudget, protects, ready, changes))
	}
	size := 0
	for _, g := range f.users {
		if !isPods(g) {
			continue
		}
		on := does(g.Operations)
		if on == "" {
			continue
		}
		narrow := condition(g)
		if size += len(narrow) + 200; size > widestEntry {
			narrow = "" // the rest is asked about in full
		}
		if part := all(on, narrow); !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return anyOf(parts...)
}

// does is true for operations on pods, but for evictions, which are about
// another object.
func does(operations []string) string {
	var parts []string
	for _, op := range operations {
		switch op {
		case decision.Delete:
			parts = append(parts, "request.operation == 'DELETE'")
		case decision.Update:
			parts = append(parts, fmt.Sprintf("(request.operation == 'UPDATE' && %s == '')", subresource))
		case decision.Resize:
			parts = append(parts, fmt.Sprintf("%s == 'resize'", subresource))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return anyOf(parts...)
}

// evictions selects namespaces in which evictions are asked about. An Eviction
// has no labels of its pod, so the namespace is all there is to go by.
func (f facts) evictions() *metav1.LabelSelector {
	var namespaces []string
	if f.counts(decision.Evict) {
		namespaces = slices.Clone(f.budgets)
	}
	for _, g := range f.users {
		if !isPods(g) || !slices.Contains(g.Operations, decision.Evict) {
			continue
		}
		valid := slices.DeleteFunc(slices.Clone(g.Namespaces), func(ns string) bool { return !resourceName.MatchString(ns) || len(ns) > 63 })
		if len(g.Namespaces) == 0 {
			return f.everywhere()
		}
		namespaces = append(namespaces, valid...)
	}
	return f.in(slices.Compact(slices.Sorted(slices.Values(namespaces))))
}

// newPods are the entries for pods that are created: those of namespaces with
// budgets, which are to be annotated, and those of our workloads, which get a
// readiness gate.
func (f facts) newPods() []admissionv1.MutatingWebhook {
	if !f.Pods {
		return nil
	}
	if f.ReadinessForAll {
		return []admissionv1.MutatingWebhook{f.mutating("mpod.kb.io", f.everywhere())}
	}
	var entries []admissionv1.MutatingWebhook
	rest := f.everywhere()
	if f.counts(decision.Delete) || f.counts(decision.Update) {
		entries = append(entries, f.mutating("mpod.kb.io", f.in(f.budgets)))
		if len(f.budgets) > mostNamespaces {
			return entries
		}
		rest = f.everywhere(metav1.LabelSelectorRequirement{Key: nameKey, Operator: metav1.LabelSelectorOpNotIn, Values: f.budgets})
	}
	ours := f.mutating("mpod-readiness.kb.io", rest)
	ours.MatchConditions = []admissionv1.MatchCondition{{Name: "owned-by-a-workload-of-ours", Expression: ownedByUs}, {Name: "without-the-readiness-gate", Expression: ungated}}
	return append(entries, ours)
}
