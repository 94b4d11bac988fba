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

// FillSpec fills in what an ImagePullJob leaves out.
func FillSpec(spec *v1beta1.ImagePullJobSpec) {
	FillTemplate(&spec.ImagePullJobTemplate)
	defaulting.SetIfNil(&spec.Parallelism, intstr.FromInt32(1))
	defaulting.SetIfEmpty(&spec.ImagePullPolicy, v1beta1.PullIfNotPresent)
}

// FillTemplate fills in what all jobs that pull images get.
func FillTemplate(template *v1beta1.ImagePullJobTemplate) {
	defaulting.SetIfEmpty(&template.CompletionPolicy.Type, v1beta1.AlwaysCompletionPolicyType)
	defaulting.SetIfNil(&template.PullPolicy, v1beta1.PullPolicy{})
	defaulting.SetIfNil(&template.PullPolicy.TimeoutSeconds, v1beta1.DefaultPullTimeoutSeconds)
	defaulting.SetIfNil(&template.PullPolicy.BackoffLimit, v1beta1.DefaultPullBackoffLimit)
}

// ValidateTemplate finds mistakes in where and how images are pulled.
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

// ValidateImage wants an image by a name that nodes can pull. The rules are those by which the name is taken apart later.
func ValidateImage(image string, path *field.Path, found *rules.Findings) {
	if image == "" {
		found.AddErrors(field.Required(path, "image can not be empty"))
	} else if _, err := reference.ParseNormalizedNamed(image); err != nil {
		found.AddErrors(field.Invalid(path, image, "must be an image such as nginx:1.27 or registry.example.com/team/app@sha256:…: "+err.Error()))
	}
}
