// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// SameWorkload reports whether both name the same workload, where they are in one namespace. The version does not count.
func SameWorkload(a, b v1beta1.TargetReference) bool {
	kind := func(t v1beta1.TargetReference) schema.GroupKind {
		return schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind()
	}
	return a.Name == b.Name && kind(a) == kind(b)
}
