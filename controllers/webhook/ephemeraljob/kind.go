// SPDX-License-Identifier: Apache-2.0

// Package ephemeraljob has the admission of EphemeralJobs (EJ-06). It sets no defaults: the controller
// applies the defaults of unset fields, and containers must set their policies. It does not repeat the
// rules of the schema.
package ephemeraljob

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// New returns the kind. It has one version.
func New() *admit.Kind[*v1alpha1.EphemeralJob] {
	return &admit.Kind[*v1alpha1.EphemeralJob]{
		New:   func() *v1alpha1.EphemeralJob { return &v1alpha1.EphemeralJob{} },
		Loose: []string{"spec.template.ephemeralContainers"},
		Same:  func(a, b *v1alpha1.EphemeralJob) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Validate: func(_ context.Context, job, _ *v1alpha1.EphemeralJob, found *rules.Findings) {
			path := field.NewPath("spec")
			if job.Spec.Selector != nil {
				found.ValidateSelector(job.Spec.Selector, path.Child("selector"))
			}
			validateContainers(job.Spec.Template.EphemeralContainers, path.Child("template", "ephemeralContainers"), found)
		},
	}
}
