// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// ConvertibleResources are the resources of a scheme that need conversion, sorted. Versions with the same fields need none: the
// API server only changes their apiVersion.
func ConvertibleResources(scheme *runtime.Scheme) []schema.GroupResource {
	var out []schema.GroupResource
	for kind := range scheme.AllKnownTypes() {
		object, err := scheme.New(kind)
		if err != nil {
			continue // the scheme has the kind, so New does not fail
		}
		if _, ok := object.(conversion.Convertible); ok {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			out = append(out, plural.GroupResource())
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}
