// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// ResolveRounded resolves v against total with a whole percentage from 0% to 100%, rounded to the
// nearest integer, half up (UD-01). Without a total a percentage is an error.
func ResolveRounded(v intstr.IntOrString, total *int32) (int, error) {
	if v.Type == intstr.Int {
		if v.IntVal < 0 {
			return 0, fmt.Errorf("%d is negative", v.IntVal)
		}
		return int(v.IntVal), nil
	}
	text, isPercentage := strings.CutSuffix(v.StrVal, "%")
	percent, err := strconv.ParseUint(text, 10, 31)
	switch {
	case !isPercentage || err != nil || percent > 100:
		return 0, fmt.Errorf("%q is neither a number nor a whole percentage from 0%% to 100%%", v.StrVal)
	case total == nil:
		return 0, fmt.Errorf("%q is a percentage of spec.replicas, which must be set", v.StrVal)
	}
	return int(math.Floor(float64(*total)*float64(percent)/100 + 0.5)), nil
}
