// SPDX-License-Identifier: Apache-2.0

// Package budgetannotation annotates pods with their PodUnavailableBudget (PUB-01).
package budgetannotation

import (
	"context"

	"k8s.io/component-base/featuregate"
	ctrl "sigs.k8s.io/controller-runtime"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
)

// New makes the step. It never refuses a pod: the controller of budgets annotates a pod whose budget is not found here.
func New(finder *podunavailablebudget.Finder) pod.MutatingStep {
	return pod.MutatingStep{
		Place: pod.BudgetAnnotation, Name: "finding the PodUnavailableBudget",
		Gates: []featuregate.Feature{features.PodUnavailableBudgetDeleteGate, features.PodUnavailableBudgetUpdateGate},
		Match: match.Created{Name: "budget", Namespaces: match.WithBudgets},
		Mutate: func(ctx context.Context, c *pod.Creation) (bool, error) {
			names, err := finder.FindForPod(ctx, c.Namespace, c.Pod)
			if err != nil {
				ctrl.LoggerFrom(ctx).V(2).Info("A pod is created without its budget, which the controller will add", "namespace", c.Namespace, "reason", err.Error())
				return false, nil
			}
			if len(names) == 0 {
				return false, nil
			}
			if c.Pod.Annotations == nil {
				c.Pod.Annotations = map[string]string{}
			}
			c.Pod.Annotations[policy.PodRelatedBudgetKey], c.Pod.Annotations[policy.PodRelatedBudgetLegacyKey] = names[0], names[0]
			return true, nil
		},
	}
}
