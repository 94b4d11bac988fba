// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"errors"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// parseTarget reads the target of an autoscaler: a percentage of what the pods request, or a quantity as the average over
// the pods. unit is that of a whole number without one. kubectl reads 0.5 with that unit too, which would be half a
// millicore; here it needs a unit.
func parseTarget(text, unit string) (autoscalingv2.MetricTarget, error) {
	if digits, isPercentage := strings.CutSuffix(text, "%"); isPercentage {
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil || n < 1 {
			return autoscalingv2.MetricTarget{}, errors.New("want a whole percentage, 1% or more")
		}
		return autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To(int32(n))}, nil
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		text += unit
	} else if _, err := strconv.ParseFloat(text, 64); err == nil {
		return autoscalingv2.MetricTarget{}, errors.New("write a number that is not whole with a unit, such as 500" + unit)
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() <= 0 {
		return autoscalingv2.MetricTarget{}, errors.New("want a percentage, such as 80%, or a quantity above 0, such as 500" + unit)
	}
	return autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &quantity}, nil
}
