// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
)

// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy.kruise.io,resources=podunavailablebudgets/status,verbs=get;update;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// writeStatus replaces the status only if it is still the one that the new status was computed from,
// so that a record made in between is not lost.
func (r *Reconciler) writeStatus(ctx context.Context, w *state, next outcome) error {
	if !equality.Semantic.DeepEqual(w.budget.Status, next.status) {
		if w.budget.Status.ObservedGeneration == 0 && r.namespaces != nil {
			// A budget refuses requests from its first status on, so from then on every request must reach the webhook.
			if err := r.namespaces.CoverNamespace(ctx, w.budget.Namespace); err != nil {
				return fmt.Errorf("having pods of namespace %s sent to the webhook: %w", w.budget.Namespace, err)
			}
		}
		b := w.budget.DeepCopy()
		b.Status = next.status
		if err := r.Client.Status().Update(ctx, b); err != nil {
			return fmt.Errorf("writing the status: %w", err)
		}
	}
	for _, pod := range next.stayed {
		r.Events.Event(pod, corev1.EventTypeWarning, policy.BudgetNotDeletedReason,
			fmt.Sprintf(policy.BudgetNotDeletedMessage, w.budget.Namespace, w.budget.Name))
	}
	return nil
}

// repairAnnotations adds to pods that were created without the webhook, or before the budget, the
// annotations by which the API server selects requests about them for the webhook (PUB-08).
func (r *Reconciler) repairAnnotations(ctx context.Context, w *state) error {
	var acts []func() error
	for _, pod := range w.active {
		if availability.BudgetName(pod) == "" {
			acts = append(acts, func() error { return r.annotatePod(ctx, w.budget.Name, pod) })
		}
	}
	return batch.RunParallel(r.writes, acts)
}

func (r *Reconciler) annotatePod(ctx context.Context, budget string, pod *corev1.Pod) error {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
		// Another client may have written another budget into the annotations, which the patch must not replace.
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion,
		"annotations": map[string]string{v1alpha1.PodRelatedBudgetKey: budget, v1alpha1.PodRelatedBudgetLegacyKey: budget},
	}})
	if err != nil {
		return fmt.Errorf("encoding annotations of pod %s: %w", pod.Name, err)
	}
	target := &corev1.Pod{}
	target.Namespace, target.Name = pod.Namespace, pod.Name
	if err := r.Client.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, raw)); err != nil {
		return fmt.Errorf("annotating pod %s with its budget: %w", pod.Name, err)
	}
	return nil
}
