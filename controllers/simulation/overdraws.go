// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

// findOverdraw returns what a write that makes an available pod unavailable violates of
// its budget, "" for nothing. It counts pods itself: it uses neither the ledger nor
// the status in which the ledger is stored.
func (j *invariantChecker) findOverdraw(was, now *corev1.Pod) string {
	if was == nil || !availability.IsAvailable(was) || now != nil && availability.IsAvailable(now) || availability.NoProtect(was) || j.exempt[was.Name] {
		return ""
	}
	operation := policy.PubDeleteOperation
	if now != nil {
		operation = policy.PubUpdateOperation // by its status too: it is the first write of an update in place
		if availability.ClassifyChange(was, now) == protection.Resize {
			operation = policy.PubResizeOperation
		}
	}
	if !j.isGuarded(operation) {
		return ""
	}
	b := j.budgetOf(was)
	if b == nil || !budgetProtects(b, was, operation) {
		return ""
	}
	wanted, total, err := wantedBy(b)
	if err != nil {
		return fmt.Sprintf("cannot be judged by PodUnavailableBudget %s: %v", b.Name, err)
	}
	left, has := len(j.ignored), budgetMatcher(b)
	for _, p := range j.s.allPods() {
		if has(p) && availability.IsAvailable(p) && !j.ignored[p.UID] {
			left++
		}
	}
	if left >= wanted {
		return ""
	}
	return fmt.Sprintf("leaves %d pods of PodUnavailableBudget %s available, which wants %d of %d", left, b.Name, wanted, total)
}

// wantedBy returns how many of how many pods a budget requires to be available; none if it
// has no limit.
func wantedBy(b *policy.PodUnavailableBudget) (wanted, total int, err error) {
	total = int(b.Status.TotalReplicas)
	if n := b.Spec.ProtectTotalReplicas; n != nil {
		total = int(*n)
	}
	switch {
	case b.Spec.MaxUnavailable != nil:
		wanted, err = budget.ResolvePercent(*b.Spec.MaxUnavailable, total, true)
		wanted = total - wanted
	case b.Spec.MinAvailable != nil:
		wanted, err = budget.ResolvePercent(*b.Spec.MinAvailable, total, true)
	}
	return wanted, total, err
}

// isGuarded reports whether budgets apply to an operation at all, by the feature gates and the namespace.
func (j *invariantChecker) isGuarded(operation policy.PubOperation) bool {
	on, namespace := j.s.gates.Enabled, j.s.cluster.workload.GetNamespace()
	if !on(features.PodWebhook) || slices.Contains([]string{metav1.NamespaceSystem, home}, namespace) || j.s.namespace[webhookconfig.SwitchKey] == webhookconfig.SwitchOff {
		return false
	}
	if operation == policy.PubDeleteOperation {
		return on(features.PodUnavailableBudgetDeleteGate)
	}
	return on(features.PodUnavailableBudgetUpdateGate)
}

// budgetOf returns the budget that a pod names, or the first one that covers it.
func (j *invariantChecker) budgetOf(pod *corev1.Pod) *policy.PodUnavailableBudget {
	list := &policy.PodUnavailableBudgetList{}
	if err := j.s.cluster.server.List(context.Background(), list, client.InNamespace(pod.Namespace)); err != nil {
		return nil // the server is in memory
	}
	var first *policy.PodUnavailableBudget
	for i := range list.Items {
		b := &list.Items[i]
		if !BudgetCovers(b, pod) {
			continue
		}
		if b.Name == availability.BudgetName(pod) {
			return b
		}
		if first == nil {
			first = b
		}
	}
	return first
}

// BudgetCovers reports whether a budget covers a pod, by its selector or its target.
func BudgetCovers(b *policy.PodUnavailableBudget, pod *corev1.Pod) bool { return budgetMatcher(b)(pod) }

// budgetMatcher returns BudgetCovers of one budget, for many pods.
func budgetMatcher(b *policy.PodUnavailableBudget) func(*corev1.Pod) bool {
	t := b.Spec.TargetReference
	if t == nil {
		return selectorMatcher(b.Spec.Selector)
	}
	kind := scale.Reference{APIVersion: t.APIVersion, Kind: t.Kind}.GroupKind()
	return func(pod *corev1.Pod) bool {
		owner := metav1.GetControllerOf(pod)
		return owner != nil && owner.Name == t.Name && scale.NewReference(owner).GroupKind() == kind
	}
}

func selectorMatcher(selector *metav1.LabelSelector) func(*corev1.Pod) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return func(pod *corev1.Pod) bool { return err == nil && !s.Empty() && s.Matches(labels.Set(pod.Labels)) }
}

func budgetProtects(b *policy.PodUnavailableBudget, pod *corev1.Pod, operation policy.PubOperation) bool {
	if isIgnored(b, pod) {
		return false
	}
	named := b.Spec.ProtectOperations
	if len(named) == 0 {
		return operation != policy.PubResizeOperation
	}
	return slices.Contains(named, operation)
}

// isIgnored reports whether a budget ignores a pod: it does not protect the pod, but counts it.
func isIgnored(b *policy.PodUnavailableBudget, pod *corev1.Pod) bool {
	return b.Spec.IgnoredPodSelector != nil && selectorMatcher(b.Spec.IgnoredPodSelector)(pod)
}

// allPods returns the pods of the workload, and the pods of other workloads that budgets cover.
func (s *Simulation) allPods() []*corev1.Pod {
	pods := s.cluster.sortedPods()
	for _, o := range s.others {
		if p, ok := o.(*corev1.Pod); ok {
			pods = append(pods, p)
		}
	}
	return pods
}
