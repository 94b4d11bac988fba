// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// ValidatePriority requires an order of pods by weights or by the values of labels.
func (f *Findings) ValidatePriority(strategy *v1beta1.UpdatePriorityStrategy, path *field.Path) {
	if len(strategy.WeightPriority) > 0 && len(strategy.OrderPriority) > 0 {
		f.AddErrors(field.Forbidden(path, "weightPriority and orderPriority can not both be set"))
	}
	for i := range strategy.WeightPriority {
		term, at := &strategy.WeightPriority[i], path.Child("weightPriority").Index(i)
		// The message is OpenKruise's; OpenKruise admits 0 too.
		if term.Weight < 0 || term.Weight > 100 {
			f.AddErrors(field.Invalid(at.Child("weight"), term.Weight, "must be in the range 1-100"))
		}
		if isEmpty(&term.MatchSelector) {
			f.AddErrors(field.Required(at.Child("matchSelector"), "an empty selector matches all pods, so it orders none"))
		} else {
			f.ValidateSelector(&term.MatchSelector, at.Child("matchSelector"))
		}
	}
	for i, term := range strategy.OrderPriority {
		if term.OrderedKey == "" {
			f.AddErrors(field.Required(path.Child("orderPriority").Index(i).Child("orderedKey"), ""))
		}
	}
}

// ValidateScatter requires terms that have a key and no duplicates.
func (f *Findings) ValidateScatter(strategy v1beta1.CloneSetUpdateScatterStrategy, path *field.Path) {
	texts := make([]string, len(strategy))
	for i, term := range strategy {
		texts[i] = term.Key + ":" + term.Value
	}
	again := FindDuplicates(texts)
	for i, term := range strategy {
		if term.Key == "" {
			f.AddErrors(field.Required(path.Index(i).Child("key"), ""))
		}
		if again[i] {
			f.AddErrors(field.Duplicate(path.Index(i), texts[i]))
		}
	}
}
