// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateResources refuses a negative quantity, and a request above its limit.
func validateResources(resources *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	errs := validateQuantities(resources.Limits, path.Child("limits"))
	errs = append(errs, validateQuantities(resources.Requests, path.Child("requests"))...)
	for _, name := range slices.Sorted(maps.Keys(resources.Requests)) {
		request := resources.Requests[name]
		limit, ok := resources.Limits[name]
		if ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return errs
}

func validateQuantities(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at := path.Key(string(name))
		errs = append(errs, invalidErrors(at, string(name), validation.IsQualifiedName(string(name)))...)
		if quantity := list[name]; quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(at, quantity.String(), "must be greater than or equal to 0"))
		}
	}
	return errs
}
