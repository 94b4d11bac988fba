// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
)

// unlimited is the value of an unset maxReplicas.
const unlimited = 1_000_000

// counts are the numbers of pods of subsets. An error in one number is reported once, and the sums are not checked
// then.
type counts struct {
	replicas *int32
	found    *rules.Findings
}

func validateCounts(deployment *v1beta1.UnitedDeployment, path *field.Path, found *rules.Findings) {
	spec := &deployment.Spec
	c, before := counts{spec.Replicas, found}, len(found.Errs)
	var sum, sumMin, sumMax, given, open int
	limits := false
	for i := range spec.Topology.Subsets {
		subset, at := &spec.Topology.Subsets[i], path.Index(i)
		if subset.Replicas != nil {
			given++
			sum += c.resolveCount(subset.Replicas, 0, at.Child("replicas"))
		}
		if subset.MaxReplicas == nil {
			open++
		}
		limits = limits || hasLimits(subset)
		least, most := c.resolveCount(subset.MinReplicas, 0, at.Child("minReplicas")), c.resolveCount(subset.MaxReplicas, unlimited, at.Child("maxReplicas"))
		if sumMin, sumMax = sumMin+least, sumMax+most; least > most {
			found.AddErrors(field.Invalid(at.Child("minReplicas"), subset.MinReplicas.String(), "must not be more than maxReplicas"))
		}
	}
	replicas, total := field.NewPath("spec", "replicas"), len(spec.Topology.Subsets)
	switch {
	case len(found.Errs) > before:
	case limits && spec.Replicas == nil:
		found.AddErrors(field.Required(replicas, "must be set where subsets have minReplicas or maxReplicas"))
	case limits && open == 0:
		found.AddErrors(field.Invalid(path, field.OmitValueType{}, "at least one subset must have no maxReplicas"))
	case limits && sumMin > sumMax:
		found.AddErrors(field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the sum of minReplicas, %d, must not be more than that of maxReplicas, %d", sumMin, sumMax)))
	case spec.Replicas == nil && given < total:
		found.AddErrors(field.Required(replicas, "must be set where not all subsets have replicas"))
	case spec.Replicas != nil && !limits:
		c.validateSum(sum, given > 0 && given == total, path)
	}
	if limits && given > 0 {
		found.AddWarning(path, "replicas of a subset have no effect where another has minReplicas or maxReplicas.")
	}
}

func (c counts) validateSum(sum int, all bool, path *field.Path) {
	replicas := int(*c.replicas)
	switch {
	case sum > replicas:
		c.found.AddErrors(field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the sum of the subsets' replicas, %d, must not be more than spec.replicas, %d", sum, replicas)))
	case all && sum < replicas:
		c.found.AddErrors(field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the sum of the subsets' replicas, %d, must be spec.replicas, %d, where all subsets have some", sum, replicas)))
	}
}

// resolveCount reads a number, or a whole percentage of the replicas, rounded to the nearest (UD-01).
func (c counts) resolveCount(value *intstr.IntOrString, none int, path *field.Path) int {
	if value == nil {
		return none
	}
	if value.Type == intstr.Int {
		rules.NotNegative(c.found, &value.IntVal, path)
		return int(value.IntVal)
	}
	n, err := budget.ResolveRounded(*value, c.replicas)
	if err == nil {
		return n
	}
	if _, isPercentage := strings.CutSuffix(value.StrVal, "%"); isPercentage && c.replicas == nil {
		if _, err := budget.ResolveRounded(*value, new(int32)); err == nil {
			c.found.AddErrors(field.Invalid(path, value.StrVal, "is a percentage of spec.replicas, which must be set"))
			return 0
		}
	}
	c.found.AddErrors(field.Invalid(path, value.StrVal, "must be a number, or a whole percentage from 0% to 100%"))
	return 0
}
