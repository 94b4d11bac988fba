// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SomeSpec wants an object to have a spec. The schema cannot, where OpenKruise let it be left out, and the rules in the
// schema of a spec are not asked about one that is not there. It answers whether it is.
func (f *Findings) SomeSpec(spec any) bool {
	if reflect.ValueOf(spec).IsZero() {
		f.AddErrors(field.Required(field.NewPath("spec"), ""))
		return false
	}
	return true
}
