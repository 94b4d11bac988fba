// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
)

// conditionTypes are the types of the conditions in every status, in their order (RD-03). Each of them means a failure while it is True,
// and what reads them may take any that is True for one. So the conditions of package kstatus are not among them: Ready would be read as
// a failure of all that is well.
func conditionTypes() []kruise.ResourceDistributionConditionType {
	return []kruise.ResourceDistributionConditionType{
		kruise.ResourceDistributionGetResourceFailed, kruise.ResourceDistributionCreateResourceFailed,
		kruise.ResourceDistributionUpdateResourceFailed, kruise.ResourceDistributionDeleteResourceFailed,
		kruise.ResourceDistributionConflictOccurred, kruise.ResourceDistributionNamespaceNotExists,
	}
}

// patchStatus writes the status if it changed.
func (r *Reconciler) patchStatus(ctx context.Context, d *kruise.ResourceDistribution, p plan, found *failures) error {
	failed := map[string]bool{}
	for _, names := range found.of {
		for _, name := range names {
			failed[name] = true
		}
	}
	succeeded := 0
	for _, name := range p.matched {
		if !failed[name] {
			succeeded++
		}
	}
	status := kruise.ResourceDistributionStatus{
		ObservedGeneration: d.Generation, Desired: int32(len(p.matched)), Succeeded: int32(succeeded), Failed: int32(len(p.matched) - succeeded), //nolint:gosec // namespaces are fewer
	}
	for _, kind := range conditionTypes() {
		r.appendCondition(&status, d.Status.Conditions, kind, found)
	}
	if equality.Semantic.DeepEqual(d.Status, status) {
		return nil
	}
	before := d.DeepCopy()
	d.Status = status
	if err := r.Client.Status().Patch(ctx, d, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status: %w", err))
	}
	return nil
}

// appendCondition appends the condition of a type to a status. was are the conditions before.
func (r *Reconciler) appendCondition(s *kruise.ResourceDistributionStatus, was []kruise.ResourceDistributionCondition, kind kruise.ResourceDistributionConditionType, found *failures) {
	if i := slices.IndexFunc(was, func(c kruise.ResourceDistributionCondition) bool { return c.Type == kind }); i >= 0 {
		s.Conditions = append(s.Conditions, was[i])
	}
	next := condition.Condition{Type: string(kind), Status: metav1.ConditionFalse, Message: kruise.ResourceDistributionSucceededReason}
	names := found.of[kind]
	if len(names) > 0 {
		next.Status, next.Message = metav1.ConditionTrue, found.why[kind]
	}
	condition.SetCondition(s, next, s.ObservedGeneration, metav1.NewTime(r.Now()).Rfc3339Copy())
	s.Conditions[len(s.Conditions)-1].FailedNamespaces = names
}
