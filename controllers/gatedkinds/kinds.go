// SPDX-License-Identifier: Apache-2.0

package gatedkinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
)

// ListUnserved lists the kinds of a scheme whose feature gates are off, in the version they are
// stored in.
func ListUnserved(scheme *runtime.Scheme, on func(featuregate.Feature) bool) []schema.GroupVersionKind {
	newest := map[schema.GroupKind]schema.GroupVersionKind{}
	for kind := range scheme.AllKnownTypes() {
		if strings.HasSuffix(kind.Group, ".kruise.io") && !IsServed(kind.Kind, on) && kind.Version > newest[kind.GroupKind()].Version {
			newest[kind.GroupKind()] = kind
		}
	}
	out := make([]schema.GroupVersionKind, 0, len(newest))
	for _, kind := range newest {
		out = append(out, kind)
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}
