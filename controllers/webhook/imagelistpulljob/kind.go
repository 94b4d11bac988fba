// SPDX-License-Identifier: Apache-2.0

// Package imagelistpulljob has the admission of ImageListPullJobs (features 15), and of their specs in
// templates. It does not repeat the rules of the schema and its CEL rules.
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

// New returns the kind. Its versions have the same fields. Defaults of ImagePullJobs that are not set here are set
// when the jobs are created.
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

// ValidateSpec finds errors in the spec of a job, or of the template of a job.
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
