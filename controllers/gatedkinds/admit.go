// SPDX-License-Identifier: Apache-2.0

package gatedkinds

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/webhook/review"
)

// refusedElsewhere reports whether the own rules of a kind refuse it, with OpenKruise's message. That message does not say how
// to turn the gates on, or that another gate must be on too.
func refusedElsewhere(kind string) bool {
	return kind == "PodUnavailableBudget" || kind == "WorkloadSpread"
}

// startsPulls reports whether an object is an AdvancedCronJob each of whose runs is an ImageListPullJob.
func startsPulls(request *admission.Request) bool {
	var job struct {
		Spec struct {
			Template struct {
				Pull *struct{} `json:"imageListPullJobTemplate"`
			} `json:"template"`
		} `json:"spec"`
	}
	// The rules of its kind refuse an object that cannot be read.
	return request.Kind.Kind == "AdvancedCronJob" && json.Unmarshal(request.Object.Raw, &job) == nil && job.Spec.Template.Pull != nil
}

// RefuseCreation is a validating webhook that refuses to create objects of a kind whose feature gates are
// off, or that would create such objects, and leaves everything else to next. Objects that exist can be changed, so that they can
// be repaired and taken over.
func RefuseCreation(next admission.Handler, on func(featuregate.Feature) bool) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		why, path := "", field.NewPath("spec")
		if request.Operation == admissionv1.Create && request.SubResource == "" {
			why = DescribeMissing(request.Kind.Kind, on)
			if startsPulls(&request) {
				why, path = DescribeMissing("ImageListPullJob", on), path.Child("template", "imageListPullJobTemplate")
			}
		}
		switch {
		case why == "":
			return next.Handle(ctx, request)
		case refusedElsewhere(request.Kind.Kind):
			answer := next.Handle(ctx, request)
			if !answer.Allowed && answer.Result != nil {
				answer.Result.Message += "; " + why
			}
			return answer
		}
		return review.RefuseInvalid(&request, field.ErrorList{field.Forbidden(path, why)})
	})
}
