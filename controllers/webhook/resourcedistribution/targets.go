// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func validateTargets(targets *v1beta1.ResourceDistributionTargets, path *field.Path, found *rules.Findings) {
	included := validateNamespaces(targets.IncludedNamespaces, path.Child("includedNamespaces", "list"), found)
	excluded := validateNamespaces(targets.ExcludedNamespaces, path.Child("excludedNamespaces", "list"), found)
	if both := sets.List(included.Intersection(excluded)); len(both) > 0 {
		found.AddErrors(field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("ambiguous targets because namespace %v is in both IncludedNamespaces.List and ExcludedNamespaces.List", both)))
	}
	found.ValidateSelector(&targets.NamespaceSelector, path.Child("namespaceSelector"))
}

func validateNamespaces(list v1beta1.ResourceDistributionTargetNamespaces, path *field.Path, found *rules.Findings) sets.Set[string] {
	names := sets.New[string]()
	for i, namespace := range list.List {
		for _, message := range validation.IsDNS1123Label(namespace.Name) {
			found.AddErrors(field.Invalid(path.Index(i).Child("name"), namespace.Name, message))
		}
		names.Insert(namespace.Name)
	}
	return names
}
