// SPDX-License-Identifier: Apache-2.0

// Package broadcastjob has the admission of BroadcastJobs (BJ-07), and of their specs in templates. It
// does not repeat the rules of the schema and its CEL rules.
package broadcastjob

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// New returns the kind. Its versions have the same fields.
func New(templates podtemplate.Settings, keepTemplates bool) *admit.Kind[*v1beta1.BroadcastJob] {
	d := defaulter{templates: templates, keepTemplates: keepTemplates}
	return &admit.Kind[*v1beta1.BroadcastJob]{
		New:     func() *v1beta1.BroadcastJob { return &v1beta1.BroadcastJob{} },
		Loose:   []string{"spec.template"},
		Same:    func(a, b *v1beta1.BroadcastJob) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Default: d.applyDefaults,
		Validate: func(_ context.Context, job, old *v1beta1.BroadcastJob, found *rules.Findings) {
			path := field.NewPath("spec")
			if old == nil {
				found.LabelName(job)
				ValidateSpec(&job.Spec, nil, templates, path, found)
			} else {
				ValidateSpec(&job.Spec, &old.Spec, templates, path, found)
			}
		},
	}
}
