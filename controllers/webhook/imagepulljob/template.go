// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/defaulting"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// FillSpec sets the defaults of an ImagePullJob.
func FillSpec(spec *v1beta1.ImagePullJobSpec) {
	FillTemplate(&spec.ImagePullJobTemplate)
	defaulting.SetIfNil(&spec.Parallelism, intstr.FromInt32(1))
	defaulting.SetIfEmpty(&spec.ImagePullPolicy, v1beta1.PullIfNotPresent)
}

// FillTemplate sets the defaults of all jobs that pull images.
func FillTemplate(template *v1beta1.ImagePullJobTemplate) {
	defaulting.SetIfEmpty(&template.CompletionPolicy.Type, v1beta1.AlwaysCompletionPolicyType)
	defaulting.SetIfNil(&template.PullPolicy, v1beta1.PullPolicy{})
	defaulting.SetIfNil(&template.PullPolicy.TimeoutSeconds, v1beta1.DefaultPullTimeoutSeconds)
	defaulting.SetIfNil(&template.PullPolicy.BackoffLimit, v1beta1.DefaultPullBackoffLimit)
}

// ValidateTemplate finds errors in the fields that say where and how images are pulled.
func ValidateTemplate(template *v1beta1.ImagePullJobTemplate, path *field.Path, found *rules.Findings) {
	if selector := template.Selector; selector != nil {
		at := path.Child("selector")
		found.ValidateSelector(&selector.LabelSelector, at)
		for i, again := range rules.FindDuplicates(selector.Names) {
			if again {
				found.AddErrors(field.Duplicate(at.Child("names").Index(i), selector.Names[i]))
			}
		}
	}
	if template.PodSelector != nil {
		found.ValidateSelector(template.PodSelector, path.Child("podSelector"))
	}
}

// ValidateImage requires the name of an image that nodes can pull. It uses the same parser as the controller.
func ValidateImage(image string, path *field.Path, found *rules.Findings) {
	if image == "" {
		found.AddErrors(field.Required(path, "image can not be empty"))
	} else if _, err := reference.ParseNormalizedNamed(image); err != nil {
		found.AddErrors(field.Invalid(path, image, "must be an image such as nginx:1.27 or registry.example.com/team/app@sha256:…: "+err.Error()))
	}
}
