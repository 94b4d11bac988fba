package cloneset

import (
	"math"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func validateStrategy(set, old *object, found *findings) {
	at, strategy := set.paths(), &set.hub.Spec.UpdateStrategy
	if set.alpha != nil {
		validateAlphaType(set, old, found)
	} else {
		oneOf(strategy.Type, at.kind, found, v1beta1.RollingUpdateCloneSetUpdateStrategyType, v1beta1.OnDeleteCloneSetUpdateStrategyType)
	}
	rolling, onDelete := strategy.RollingUpdate, strategy.Type == v1beta1.OnDeleteCloneSetUpdateStrategyType
	if rolling == nil {
		if !onDelete {
			found.add(field.Required(at.rolling, ""))
		}
		return
	}
	if set.alpha == nil && !(onDelete && rolling.PodUpdatePolicy == "") {
		oneOf(rolling.PodUpdatePolicy, at.policy, found,
			v1beta1.RecreatePodUpdatePolicyType, v1beta1.InPlaceIfPossiblePodUpdatePolicyType, v1beta1.InPlaceOnlyPodUpdatePolicyType)
	}
	if rolling.Partition != nil {
		fraction(rolling.Partition, replicas(set), at.rolling.Child("partition"), found)
	} else if !onDelete {
		found.add(field.Required(at.rolling.Child("partition"), ""))
	}
	if rolling.PriorityStrategy != nil {
		validatePriority(rolling.PriorityStrategy, at.rolling.Child("priorityStrategy"), found)
	}
	validateScatter(rolling.ScatterStrategy, at.rolling.Child("scatterStrategy"), found)
	validateBudget(set, rolling, at.rolling, found)
}

// validateBudget wants room for the update to begin in: a pod that may be unavailable, or one that may be added.
func validateBudget(set *object, rolling *v1beta1.RollingUpdateCloneSetStrategy, path *field.Path, found *findings) {
	before, total := len(found.errs), replicas(set)
	maxUnavailable, maxSurge := intstr.FromString(v1beta1.DefaultCloneSetMaxUnavailable), intstr.FromInt32(0)
	if rolling.MaxUnavailable != nil {
		maxUnavailable = *rolling.MaxUnavailable
	}
	if rolling.MaxSurge != nil {
		maxSurge = *rolling.MaxSurge
	}
	unavailable := amount(&maxUnavailable, total, path.Child("maxUnavailable"), found)
	surge := amount(&maxSurge, total, path.Child("maxSurge"), found)
	if len(found.errs) > before {
		return
	}
	if surge > 0 && rolling.PodUpdatePolicy == v1beta1.InPlaceOnlyPodUpdatePolicyType {
		found.add(field.Forbidden(path.Child("maxSurge"), "maxSurge can not be used with InPlaceOnly, which never adds a pod"))
	}
	if total > 0 && unavailable < 1 && surge < 1 {
		found.add(field.Invalid(path.Child("maxUnavailable"), maxUnavailable.String(), "maxUnavailable and maxSurge should not both be less than 1"))
	}
}

func validatePriority(strategy *v1beta1.UpdatePriorityStrategy, path *field.Path, found *findings) {
	if len(strategy.WeightPriority) > 0 && len(strategy.OrderPriority) > 0 {
		found.add(field.Forbidden(path, "weightPriority and orderPriority can not both be set"))
	}
	for i := range strategy.WeightPriority {
		term, at := &strategy.WeightPriority[i], path.Child("weightPriority").Index(i)
		// The message is OpenKruise's; 0 has always passed.
		if term.Weight < 0 || term.Weight > 100 {
			found.add(field.Invalid(at.Child("weight"), term.Weight, "must be in the range 1-100"))
		}
		validateTermSelector(&term.MatchSelector, at.Child("matchSelector"), found)
	}
	for i, term := range strategy.OrderPriority {
		if term.OrderedKey == "" {
			found.add(field.Required(path.Child("orderPriority").Index(i).Child("orderedKey"), ""))
		}
	}
}

func validateTermSelector(selector *metav1.LabelSelector, path *field.Path, found *findings) {
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		found.add(field.Required(path, "an empty selector matches all pods, so it orders none"))
		return
	}
	found.add(metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)...)
}

func validateScatter(strategy v1beta1.CloneSetUpdateScatterStrategy, path *field.Path, found *findings) {
	texts := make([]string, len(strategy))
	for i, term := range strategy {
		texts[i] = term.Key + ":" + term.Value
	}
	again := duplicates(texts)
	for i, term := range strategy {
		if term.Key == "" {
			found.add(field.Required(path.Index(i).Child("key"), ""))
		}
		if again[i] {
			found.add(field.Duplicate(path.Index(i), texts[i]))
		}
	}
}

// amount is a fraction that must be whole when it is used: a percentage of 12.5 is admitted, as it always was, but
// counts as none.
func amount(value *intstr.IntOrString, total int, path *field.Path, found *findings) int {
	if percent, ok := strings.CutSuffix(value.StrVal, "%"); ok && value.Type == intstr.String {
		if _, err := strconv.Atoi(percent); err != nil {
			before := len(found.errs)
			number := fraction(value, total, path, found)
			if len(found.errs) == before {
				found.warn(path, "%q is not a whole percentage and counts as 0.", value.StrVal)
			}
			return number
		}
	}
	return fraction(value, total, path, found)
}

// fraction resolves a number or a percentage of the total, rounded up. A number in quotes is neither (features 1.2).
func fraction(value *intstr.IntOrString, total int, path *field.Path, found *findings) int {
	if value.Type == intstr.Int {
		if value.IntVal < 0 {
			found.add(field.Invalid(path, value.IntVal, "must be greater than or equal to 0"))
		}
		return int(value.IntVal)
	}
	percent, ok := strings.CutSuffix(value.StrVal, "%")
	number, err := strconv.ParseFloat(percent, 64)
	switch {
	case !ok:
		found.add(field.Invalid(path, value.StrVal, "invalid type: string is not a percentage"))
	case err != nil || math.IsNaN(number) || math.IsInf(number, 0):
		found.add(field.Invalid(path, value.StrVal, "must be a percentage such as 20%"))
	case number < 0:
		found.add(field.Invalid(path, value.StrVal, "must be greater than or equal to 0"))
	}
	return int(min(math.Ceil(number*float64(total)/100), math.MaxInt32))
}

func replicas(set *object) int {
	if set.hub.Spec.Replicas == nil {
		return 1
	}
	return int(*set.hub.Spec.Replicas)
}

func oneOf[T ~string](value T, path *field.Path, found *findings, supported ...T) {
	for _, other := range supported {
		if value == other {
			return
		}
	}
	found.add(field.NotSupported(path, value, supported))
}
