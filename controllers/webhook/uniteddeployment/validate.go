// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

type validator struct {
	templates podtemplate.Settings
}

func (v validator) validateSpec(_ context.Context, deployment, old *v1beta1.UnitedDeployment, found *rules.Findings) {
	if old == nil {
		found.SubdomainName(deployment)
	}
	spec := field.NewPath("spec")
	rules.NotNegative(found, deployment.Spec.RevisionHistoryLimit, spec.Child("revisionHistoryLimit"))
	found.SomeSelector(deployment.Spec.Selector, spec.Child("selector"), "empty selector is invalid for uniteddeployment")
	v.validateTemplates(deployment, old, spec.Child("template"), found)
	validateSubsets(deployment, old, spec.Child("topology", "subsets"), found)
	validateCounts(deployment, spec.Child("topology", "subsets"), found)
	validatePartitions(deployment, spec.Child("updateStrategy", "manualUpdate", "partitions"), found)
}

func validatePartitions(deployment *v1beta1.UnitedDeployment, path *field.Path, found *rules.Findings) {
	update := deployment.Spec.UpdateStrategy.ManualUpdate
	if update == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(update.Partitions)) {
		if !slices.ContainsFunc(deployment.Spec.Topology.Subsets, func(s v1beta1.Subset) bool { return s.Name == name }) {
			found.AddErrors(field.Invalid(path.Key(name), update.Partitions[name], fmt.Sprintf("subset %s does not exist", name)))
		}
		partition := update.Partitions[name]
		rules.NotNegative(found, &partition, path.Key(name))
	}
}
