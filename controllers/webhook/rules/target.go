// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// SameWorkload reports whether two references in one namespace name the same workload. The version does not matter.
func SameWorkload(a, b v1beta1.TargetReference) bool {
	kind := func(t v1beta1.TargetReference) schema.GroupKind {
		return schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind()
	}
	return a.Name == b.Name && kind(a) == kind(b)
}
