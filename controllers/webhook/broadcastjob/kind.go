// SPDX-License-Identifier: Apache-2.0

// Package broadcastjob says what admission does for BroadcastJobs (BJ-07), and
// for their specs in templates. What the schema and its CEL rules say is not said
// again here.
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

// New is the kind. Its versions look the same.
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
