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

// ConvertibleResources are those of a scheme that have a version to convert, sorted. Versions that look the same have nothing to
// convert: the API server changes their apiVersion alone.
func ConvertibleResources(scheme *runtime.Scheme) []schema.GroupResource {
	var out []schema.GroupResource
	for kind := range scheme.AllKnownTypes() {
		object, err := scheme.New(kind)
		if err != nil {
			continue // it is known, so it can be made
		}
		if _, ok := object.(conversion.Convertible); ok {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			out = append(out, plural.GroupResource())
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}
