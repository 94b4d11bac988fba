// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"math"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ResolveAmount resolves a number or a percentage that must be whole when it is used: a percentage of 12.5 is still
// admitted, but counts as 0.
func (f *Findings) ResolveAmount(value *intstr.IntOrString, total int, path *field.Path) int {
	if percent, ok := strings.CutSuffix(value.StrVal, "%"); ok && value.Type == intstr.String {
		if _, err := strconv.Atoi(percent); err != nil {
			before := len(f.Errs)
			number := f.ResolveFraction(value, total, path)
			if len(f.Errs) == before {
				f.AddWarning(path, "%q is not a whole percentage and counts as 0.", value.StrVal)
			}
			return number
		}
	}
	return f.ResolveFraction(value, total, path)
}

// ResolveFraction resolves a number or a percentage of the total, rounded up. A number in quotes is invalid.
func (f *Findings) ResolveFraction(value *intstr.IntOrString, total int, path *field.Path) int {
	if value.Type == intstr.Int {
		if value.IntVal < 0 {
			f.AddErrors(field.Invalid(path, value.IntVal, "must be greater than or equal to 0"))
		}
		return int(value.IntVal)
	}
	percent, ok := strings.CutSuffix(value.StrVal, "%")
	number, err := strconv.ParseFloat(percent, 64)
	switch {
	case !ok:
		f.AddErrors(field.Invalid(path, value.StrVal, "invalid type: string is not a percentage"))
	case err != nil || math.IsNaN(number) || math.IsInf(number, 0):
		f.AddErrors(field.Invalid(path, value.StrVal, "must be a percentage such as 20%"))
	case number < 0:
		f.AddErrors(field.Invalid(path, value.StrVal, "must be greater than or equal to 0"))
	}
	return int(min(math.Ceil(number*float64(total)/100), math.MaxInt32))
}

// NotNegative requires 0 or more, or an unset value.
func NotNegative[T ~int32 | ~int64](f *Findings, value *T, path *field.Path) {
	if value != nil {
		f.AddErrors(apivalidation.ValidateNonnegativeField(int64(*value), path)...)
	}
}
