// SPDX-License-Identifier: Apache-2.0

// Package imagepulljob has the admission of ImagePullJobs (IMG-13), and of the fields that they share
// with ImageListPullJobs. It does not repeat the rules of the schema and its CEL rules.
package imagepulljob

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// New returns the kind. Its versions have the same fields.
func New() *admit.Kind[*v1beta1.ImagePullJob] {
	return &admit.Kind[*v1beta1.ImagePullJob]{
		New:     func() *v1beta1.ImagePullJob { return &v1beta1.ImagePullJob{} },
		Same:    func(a, b *v1beta1.ImagePullJob) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Default: func(job, _ *v1beta1.ImagePullJob) { FillSpec(&job.Spec) },
		Validate: func(_ context.Context, job, _ *v1beta1.ImagePullJob, found *rules.Findings) {
			path := field.NewPath("spec")
			ValidateImage(job.Spec.Image, path.Child("image"), found)
			ValidateTemplate(&job.Spec.ImagePullJobTemplate, path, found)
		},
	}
}
