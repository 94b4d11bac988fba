// SPDX-License-Identifier: Apache-2.0

// Package budget resolves the numbers that the safety of a rollout depends on:
// percentages, differences and limits. No policy influences them.
package budget

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// allPods is the only partition string that keeps every pod.
const allPods = "100%"

// ResolvePercent resolves v against total with an integer percentage (A-11, "int").
// A string without "%" is an error. The result may be negative if v is.
func ResolvePercent(v intstr.IntOrString, total int, roundUp bool) (int, error) {
	if v.Type == intstr.Int {
		return v.IntValue(), nil
	}
	digits, ok := strings.CutSuffix(v.StrVal, "%")
	if !ok {
		return 0, fmt.Errorf("%q is neither an integer nor a percentage such as \"20%%\"", v.StrVal)
	}
	p, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole percentage such as \"20%%\"", v.StrVal)
	}
	return scalePercentage(float64(p), total, roundUp), nil
}

// ResolveShare resolves v against total with a percentage that is a float, and rounds down (A-11,
// "float"). A string without "%" is an error.
func ResolveShare(v intstr.IntOrString, total int) (int, error) {
	if v.Type == intstr.Int {
		return v.IntValue(), nil
	}
	p, err := parsePercentage(v.StrVal)
	if err != nil {
		return 0, err
	}
	return scalePercentage(p, total, false), nil
}

func parsePercentage(percentage string) (float64, error) {
	digits, ok := strings.CutSuffix(percentage, "%")
	if !ok {
		return 0, fmt.Errorf("%q is neither an integer nor a percentage such as \"20%%\"", percentage)
	}
	p, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(p) || math.IsInf(p, 0) {
		return 0, fmt.Errorf("%q is not a percentage such as \"12.5%%\"", percentage)
	}
	return p, nil
}

// ResolvePartition is the number of pods kept at the old revision (A-11, first row):
// the percentage is a float and rounds up, but only "100%" keeps all pods of
// more than one. A nil partition keeps none.
func ResolvePartition(v *intstr.IntOrString, replicas int) (int, error) {
	if v == nil {
		return 0, nil
	}
	n := v.IntValue()
	if v.Type == intstr.String {
		p, err := parsePercentage(v.StrVal)
		if err != nil {
			return 0, err
		}
		n = scalePercentage(p, replicas, true)
		if replicas > 1 && n == replicas && v.StrVal != allPods {
			n = replicas - 1
		}
	}
	return min(max(n, 0), replicas), nil
}

func scalePercentage(percent float64, total int, roundUp bool) int {
	exact := percent * float64(total) / 100
	if roundUp {
		exact = math.Ceil(exact)
	} else {
		exact = math.Floor(exact)
	}
	// An int conversion of a number beyond the range is undefined, and may even be negative.
	return int(min(max(exact, math.MinInt32), math.MaxInt32))
}
