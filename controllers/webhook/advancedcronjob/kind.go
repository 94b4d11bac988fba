// SPDX-License-Identifier: Apache-2.0

// Package advancedcronjob has the admission of AdvancedCronJobs (features 6). It does not repeat the
// rules of the schema and its CEL rules.
package advancedcronjob

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
	"github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// New returns the kind. Defaults of templates are set only in a copy, to check it: the jobs that are created get
// their defaults when they are created.
func New(templates podtemplate.Settings) *admit.Kind[*v1beta1.AdvancedCronJob] {
	v := validator{templates: templates}
	return &admit.Kind[*v1beta1.AdvancedCronJob]{
		New:          func() *v1beta1.AdvancedCronJob { return &v1beta1.AdvancedCronJob{} },
		Older:        func() admit.Spoke { return &v1alpha1.AdvancedCronJob{} },
		OlderVersion: v1alpha1.GroupVersion.Version,
		Renamed: map[string]string{
			"spec.template.imageListPullJobTemplate": "metadata.annotations[" + conversiondata.NewerKey + "].imageListPullJobTemplate",
		},
		Loose:   []string{"spec.template.jobTemplate", "spec.template.broadcastJobTemplate.metadata", "spec.template.broadcastJobTemplate.spec.template"},
		Same:    func(a, b *v1beta1.AdvancedCronJob) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) },
		Default: applyDefaults,
		Validate: func(_ context.Context, job, old *v1beta1.AdvancedCronJob, found *rules.Findings) {
			v.validateSpec(job, old, found)
		},
	}
}
