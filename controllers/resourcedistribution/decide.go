// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/placement"
)

// Reasons of events.
const (
	// HeldReason is the reason of an event about a rule that leaves all copies unchanged.
	HeldReason = "DistributionHeld"
	// DeniedReason is the reason of an event about namespaces for which a rule denies copies.
	DeniedReason = "DistributionDenied"
)

// plan says which namespaces are to have a copy.
type plan struct {
	held    bool
	matched []string
	// there are the namespaces that exist and are not terminating.
	there map[string]*corev1.Namespace
}

func (r *Reconciler) decidePlan(ctx context.Context, d *kruise.ResourceDistribution, want template, namespaces []corev1.Namespace) (plan, error) {
	p := plan{there: map[string]*corev1.Namespace{}}
	for i := range namespaces {
		if ns := &namespaces[i]; ns.DeletionTimestamp == nil && ns.Status.Phase != corev1.NamespaceTerminating {
			p.there[ns.Name] = ns
		}
	}
	in := points.DistributionInput{
		Now:          r.Now().UnixNano(),
		Distribution: points.Distribution{Name: d.Name, Labels: d.Labels, Annotations: facts.VisibleAnnotations(d.Annotations), Kind: want.kind, Object: want.object.GetName()},
	}
	var err error
	if in.Namespaces, err = requestedNamespaces(&d.Spec.Targets, namespaces, p.there); err != nil {
		return p, err
	}
	subject := facts.ObjectSubject(kruise.GroupVersion.Group, "ResourceDistribution", d)
	out, _ := engine.Decide(ctx, r.Engine, points.DistributionPoint(), subject, in)
	if len(out.Holds) > 0 {
		first := slices.MinFunc(out.Holds, func(a, b decision.Hold) int {
			return slices.Compare([]string{a.Rule, a.Message}, []string{b.Rule, b.Message})
		})
		p.held = true
		r.recordEventOnce(d, HeldReason, fmt.Sprintf("%s (rule %s)", first.Message, first.Rule))
		return p, nil
	}
	p.matched = out.PermittedNamespaces(in)
	if denied := out.DeniedNamespaces(in); len(denied) > 0 {
		r.recordEventOnce(d, DeniedReason, describeDenied(denied))
	} else {
		r.memory.GetOrCreate(d).told = ""
	}
	return p, nil
}

// describeDenied names the namespaces that are denied by one rule.
func describeDenied(denied map[string]points.Denial) string {
	var names []string
	for name := range denied {
		names = append(names, name)
	}
	slices.Sort(names)
	first := denied[names[0]]
	text := fmt.Sprintf("%s (rule %s)", first.Message, first.Rule)
	if more := names[1:]; len(more) > 0 {
		text += fmt.Sprintf(" %d more namespaces are denied a copy: %s.", len(more), message.ListNames(more))
	}
	return text
}

// requestedNamespaces returns the namespaces that a spec asks for, sorted by name (RD-01).
func requestedNamespaces(t *kruise.ResourceDistributionTargets, namespaces []corev1.Namespace, there map[string]*corev1.Namespace) ([]points.Namespace, error) {
	selector := labels.Nothing()
	if len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) > 0 {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(&t.NamespaceSelector); err != nil {
			return nil, fmt.Errorf("reading spec.targets.namespaceSelector: %w", err)
		}
	}
	names := map[string]map[string]string{}
	for i := range namespaces {
		if ns := &namespaces[i]; t.AllNamespaces || selector.Matches(labels.Set(ns.Labels)) {
			names[ns.Name] = ns.Labels
		}
	}
	if !t.AllNamespaces {
		for _, ns := range t.IncludedNamespaces.List {
			names[ns.Name] = nil
			if n := there[ns.Name]; n != nil {
				names[ns.Name] = n.Labels
			}
		}
	}
	out := make([]points.Namespace, 0, len(names))
	for name, labels := range names {
		out = append(out, points.Namespace{
			Name: name, Labels: labels, Missing: there[name] == nil,
			Excluded: slices.ContainsFunc(t.ExcludedNamespaces.List, func(ns kruise.ResourceDistributionNamespace) bool { return ns.Name == name }),
		})
	}
	slices.SortFunc(out, func(a, b points.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
