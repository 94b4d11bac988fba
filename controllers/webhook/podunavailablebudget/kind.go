// SPDX-License-Identifier: Apache-2.0

// Package podunavailablebudget has the admission of PodUnavailableBudgets. They have no defaults:
// which operations count, and how many pods there should be, is decided for each request that would
// make a pod unavailable.
//
// The schema has the rules about one or two fields. This package has the rules about selectors, about
// annotations that are fields in v1beta1, and about budgets that conflict.
package podunavailablebudget

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
)

// New makes the webhooks of PodUnavailableBudgets. The reader reads the other budgets of a namespace. off is true if
// both feature gates are off: no budget could protect a pod then, so new ones are refused.
func New(reader client.Reader, off bool) *admit.Kind[*v1beta1.PodUnavailableBudget] {
	v := &validator{budgets: reader, off: off}
	return &admit.Kind[*v1beta1.PodUnavailableBudget]{
		New:          func() *v1beta1.PodUnavailableBudget { return &v1beta1.PodUnavailableBudget{} },
		Older:        func() admit.Spoke { return &v1alpha1.PodUnavailableBudget{} },
		OlderVersion: v1alpha1.GroupVersion.Version,
		Renamed: map[string]string{
			"spec.protectTotalReplicas": annotationPath(v1alpha1.BudgetProtectTotalReplicasKey).String(),
		},
		Same: func(a, b *v1beta1.PodUnavailableBudget) bool {
			return equality.Semantic.DeepEqual(a.Spec, b.Spec) && sameAnnotation(a, b, v1alpha1.BudgetProtectOperationsKey) &&
				sameAnnotation(a, b, v1alpha1.BudgetProtectTotalReplicasKey)
		},
		Validate: v.validateSpec,
	}
}

func sameAnnotation(a, b *v1beta1.PodUnavailableBudget, key string) bool {
	before, had := a.Annotations[key]
	after, has := b.Annotations[key]
	return had == has && before == after
}
