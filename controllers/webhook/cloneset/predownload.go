// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// validatePreDownload checks the fields of v1beta1, and only changed ones: in v1alpha1 the values are annotations,
// which are not checked, and such a value must not prevent users of v1beta1 from updating other fields.
func validatePreDownload(set *v1beta1.CloneSet, old *object, found *rules.Findings) {
	strategy := inPlace(set)
	if strategy == nil || old != nil && equality.Semantic.DeepEqual(strategy, inPlace(old.Hub)) {
		return
	}
	path := rollingUpdate().Child("inPlaceUpdateStrategy")
	if value := strategy.ImagePreDownloadParallelism; value != nil {
		at := path.Child("imagePreDownloadParallelism")
		if value.Type == intstr.String {
			found.AddErrors(field.Invalid(at, value.StrVal, "must be a number, not a percentage"))
		} else {
			found.AddErrors(apivalidation.ValidateNonnegativeField(int64(value.IntVal), at)...)
		}
	}
	if value := strategy.ImagePreDownloadTimeoutSeconds; value != nil {
		found.AddErrors(apivalidation.ValidateNonnegativeField(int64(*value), path.Child("imagePreDownloadTimeoutSeconds"))...)
	}
	if value := strategy.ImagePreDownloadMinUpdatedReadyPods; value != nil {
		found.AddErrors(apivalidation.ValidateNonnegativeField(int64(*value), path.Child("imagePreDownloadMinUpdatedReadyPods"))...)
	}
}

func inPlace(set *v1beta1.CloneSet) *v1beta1.InPlaceUpdateStrategy {
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		return nil
	}
	return set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy
}
