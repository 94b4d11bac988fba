// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SomeSpec requires a spec, and reports whether it is set. The schema cannot require it if OpenKruise's schema does
// not, and the rules in the schema of a spec do not apply to a missing one.
func (f *Findings) SomeSpec(spec any) bool {
	if reflect.ValueOf(spec).IsZero() {
		f.AddErrors(field.Required(field.NewPath("spec"), ""))
		return false
	}
	return true
}
