// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

// conditionTypes are the types of the conditions in every status, in their order (RD-03).
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
		status.Conditions = append(status.Conditions, r.buildCondition(d, kind, found))
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

func (r *Reconciler) buildCondition(d *kruise.ResourceDistribution, kind kruise.ResourceDistributionConditionType, found *failures) kruise.ResourceDistributionCondition {
	out := kruise.ResourceDistributionCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: kruise.ResourceDistributionSucceededReason, LastTransitionTime: metav1.NewTime(r.Now()).Rfc3339Copy(),
	}
	if names := found.of[kind]; len(names) > 0 {
		out.Status, out.Reason, out.FailedNamespaces = corev1.ConditionTrue, message.Shorten(found.why[kind]), names
	}
	for _, was := range d.Status.Conditions {
		if was.Type == kind && was.Status == out.Status {
			out.LastTransitionTime = was.LastTransitionTime
		}
	}
	return out
}
