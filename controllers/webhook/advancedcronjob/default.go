package advancedcronjob

import (
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/imagepulljob"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func fill(job, _ *v1beta1.AdvancedCronJob) {
	spec := &job.Spec
	pull := spec.Template.ImageListPullJobTemplate
	if pull != nil {
		rules.Empty(&spec.ConcurrencyPolicy, v1beta1.ReplaceConcurrent)
	}
	rules.Empty(&spec.ConcurrencyPolicy, v1beta1.AllowConcurrent)
	rules.Unset(&spec.Paused, false)
	rules.Unset(&spec.SuccessfulJobsHistoryLimit, v1beta1.DefaultSuccessfulJobsHistoryLimit)
	rules.Unset(&spec.FailedJobsHistoryLimit, v1beta1.DefaultFailedJobsHistoryLimit)
	// Who says when the jobs end is taken to say the rest too, as OpenKruise does.
	if pull != nil && pull.Spec.CompletionPolicy.Type == "" {
		imagepulljob.FillTemplate(&pull.Spec.ImagePullJobTemplate)
		rules.Empty(&pull.Spec.ImagePullPolicy, v1beta1.PullIfNotPresent)
	}
}
