// SPDX-License-Identifier: Apache-2.0

// Package imagelistpulljob says what admission does for ImageListPullJobs (features
// 15), and for their specs in templates. What the schema and its CEL rules say is
// not said again here.
package imagelistpulljob

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/imagepulljob"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// New is the kind. Its versions look the same. What it leaves out of the defaults of an ImagePullJob, those that it
// creates get.
func New() *admit.Kind[*v1beta1.ImageListPullJob] {
	return &admit.Kind[*v1beta1.ImageListPullJob]{
		New:     func() *v1beta1.ImageListPullJob { return &v1beta1.ImageListPullJob{} },
		Same:    func(a, b *v1beta1.ImageListPullJob) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Default: func(job, _ *v1beta1.ImageListPullJob) { imagepulljob.FillTemplate(&job.Spec.ImagePullJobTemplate) },
		Validate: func(_ context.Context, job, _ *v1beta1.ImageListPullJob, found *rules.Findings) {
			ValidateSpec(&job.Spec, field.NewPath("spec"), found)
		},
	}
}

// ValidateSpec finds mistakes in the spec of a job, which is in a job or in the template of one.
func ValidateSpec(spec *v1beta1.ImageListPullJobSpec, path *field.Path, found *rules.Findings) {
	again := rules.FindDuplicates(spec.Images)
	for i, image := range spec.Images {
		at := path.Child("images").Index(i)
		imagepulljob.ValidateImage(image, at, found)
		if again[i] {
			err := field.Duplicate(at, image)
			err.Detail = "images cannot have duplicate values"
			found.AddErrors(err)
		}
	}
	imagepulljob.ValidateTemplate(&spec.ImagePullJobTemplate, path, found)
}
