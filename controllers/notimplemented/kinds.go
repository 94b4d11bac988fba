// SPDX-License-Identifier: Apache-2.0

package notimplemented

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kinds are all of our API groups that a scheme knows, in the version they are
// stored in, but those that have a controller.
func Kinds(scheme *runtime.Scheme, served ...string) []schema.GroupVersionKind {
	newest := map[schema.GroupKind]schema.GroupVersionKind{}
	for kind := range scheme.AllKnownTypes() {
		if !strings.HasSuffix(kind.Group, ".kruise.io") || slices.Contains(served, kind.Kind) {
			continue
		}
		object, err := scheme.New(kind)
		if err != nil {
			continue // it is known, so it can be made
		}
		// Options and events are registered with every group; they are no objects.
		if _, ok := object.(client.Object); ok && kind.Version > newest[kind.GroupKind()].Version {
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
