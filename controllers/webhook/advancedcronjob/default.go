// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/defaulting"
	"github.com/regatta-sh/regatta/controllers/webhook/imagepulljob"
)

func applyDefaults(job, _ *v1beta1.AdvancedCronJob) {
	spec := &job.Spec
	pull := spec.Template.ImageListPullJobTemplate
	if pull != nil {
		defaulting.SetIfEmpty(&spec.ConcurrencyPolicy, v1beta1.ReplaceConcurrent)
	}
	defaulting.SetIfEmpty(&spec.ConcurrencyPolicy, v1beta1.AllowConcurrent)
	defaulting.SetIfNil(&spec.Paused, false)
	defaulting.SetIfNil(&spec.SuccessfulJobsHistoryLimit, v1beta1.DefaultSuccessfulJobsHistoryLimit)
	defaulting.SetIfNil(&spec.FailedJobsHistoryLimit, v1beta1.DefaultFailedJobsHistoryLimit)
	// A user who sets the type of the completion policy gets no other defaults for it, as in OpenKruise.
	if pull != nil && pull.Spec.CompletionPolicy.Type == "" {
		imagepulljob.FillTemplate(&pull.Spec.ImagePullJobTemplate)
		defaulting.SetIfEmpty(&pull.Spec.ImagePullPolicy, v1beta1.PullIfNotPresent)
	}
}
