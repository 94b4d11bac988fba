// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func (o Options) validateSpec(ctx context.Context, set, old *v1beta1.SidecarSet, found *rules.Findings) {
	spec := field.NewPath("spec")
	if old == nil {
		found.LabelName(set) // the name is the value of a label of revisions
	}
	found.SomeSelector(set.Spec.Selector, spec.Child("selector"), "empty selector is not valid for sidecarset.")
	if set.Spec.NamespaceSelector != nil {
		found.ValidateSelector(set.Spec.NamespaceSelector, spec.Child("namespaceSelector"))
	}
	validateStrategy(set, found)
	o.validateContainers(set, old, found)
	o.validateCanary(ctx, set, old, found)
	o.validateRevision(ctx, set, old, found)
	o.validateMetadata(ctx, set, old, found)
	if len(found.Errs) == 0 && (old == nil || !sameForOthers(set, old)) {
		o.validateOthers(ctx, set, found)
	}
}

func validateStrategy(set *v1beta1.SidecarSet, found *rules.Findings) {
	path, strategy := field.NewPath("spec", "updateStrategy"), &set.Spec.UpdateStrategy
	if strategy.Selector != nil {
		found.ValidateSelector(strategy.Selector, path.Child("selector"))
	}
	const pods = 100 // any number: the number of pods is not known
	if strategy.Partition != nil {
		found.ResolveFraction(strategy.Partition, pods, path.Child("partition"))
	}
	if strategy.MaxUnavailable != nil {
		found.ResolveAmount(strategy.MaxUnavailable, pods, path.Child("maxUnavailable"))
	}
	if strategy.PriorityStrategy != nil {
		found.ValidatePriority(strategy.PriorityStrategy, path.Child("priorityStrategy"))
	}
	found.ValidateScatter(strategy.ScatterStrategy, path.Child("scatterStrategy"))
}

// sameForOthers reports whether a change does not matter for other SidecarSets: the same pods get the same
// contents.
func sameForOthers(a, b *v1beta1.SidecarSet) bool {
	same := equality.Semantic.DeepEqual
	return baseOf(a) == baseOf(b) && sameContainers(a, b) && same(a.Spec.Selector, b.Spec.Selector) &&
		same(a.Spec.NamespaceSelector, b.Spec.NamespaceSelector) && same(a.Spec.Volumes, b.Spec.Volumes) &&
		same(a.Spec.PatchPodMetadata, b.Spec.PatchPodMetadata)
}
