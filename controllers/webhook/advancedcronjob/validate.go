// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/broadcastjob"
	"github.com/regatta-sh/regatta/controllers/webhook/imagelistpulljob"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// maxDeadlineSeconds is how long the pulls of images may take at most: a day.
const maxDeadlineSeconds = 24 * 60 * 60

type validator struct {
	templates podtemplate.Settings
}

func (v validator) validateSpec(job, old *v1beta1.AdvancedCronJob, found *rules.Findings) {
	path, spec := field.NewPath("spec"), &job.Spec
	validateSchedule(spec, path, found)
	if old == nil {
		found.LabelName(job)
		v.validateTemplate(&spec.Template, path.Child("template"), found)
	} else {
		validateUnchanged(&spec.Template, &old.Spec.Template, path.Child("template"), found)
	}
	validateCount(&spec.Template, path.Child("template"), found)
	if pull := spec.Template.ImageListPullJobTemplate; pull != nil {
		if spec.ConcurrencyPolicy == v1beta1.AllowConcurrent {
			found.AddErrors(field.NotSupported(path.Child("concurrencyPolicy"), spec.ConcurrencyPolicy, []v1beta1.ConcurrencyPolicy{v1beta1.ReplaceConcurrent, v1beta1.ForbidConcurrent}))
		}
		validatePull(&pull.Spec, path.Child("template", "imageListPullJobTemplate", "spec"), found)
	}
}

// validateCount checks that there is one template. CEL cannot, since jobTemplate has no schema, and in v1alpha1 a
// template may be in an annotation.
func validateCount(template *v1beta1.CronJobTemplate, path *field.Path, found *rules.Findings) {
	count := 0
	for _, set := range []bool{template.JobTemplate != nil, template.BroadcastJobTemplate != nil, template.ImageListPullJobTemplate != nil} {
		if set {
			count++
		}
	}
	if count != 1 {
		found.AddErrors(field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("has %d templates, must have exactly one of jobTemplate, broadcastJobTemplate and imageListPullJobTemplate", count)))
	}
}

func (v validator) validateTemplate(template *v1beta1.CronJobTemplate, path *field.Path, found *rules.Findings) {
	if job := template.JobTemplate; job != nil {
		found.PodsOfJob(&job.Spec.Template, v.templates, path.Child("jobTemplate", "spec", "template"))
	}
	if job := template.BroadcastJobTemplate; job != nil {
		broadcastjob.ValidateSpec(&job.Spec, nil, v.templates, path.Child("broadcastJobTemplate", "spec"), found)
	}
}

// validateUnchanged refuses changes of templates: only a template that pulls images can be changed, and no template
// can be replaced by one of another kind.
func validateUnchanged(template, old *v1beta1.CronJobTemplate, path *field.Path, found *rules.Findings) {
	const message = "cannot be changed; of templates, only an imageListPullJobTemplate can"
	if !equality.Semantic.DeepEqual(template.JobTemplate, old.JobTemplate) {
		found.AddErrors(field.Forbidden(path.Child("jobTemplate"), message))
	}
	if !equality.Semantic.DeepEqual(template.BroadcastJobTemplate, old.BroadcastJobTemplate) {
		found.AddErrors(field.Forbidden(path.Child("broadcastJobTemplate"), message))
	}
	if (template.ImageListPullJobTemplate == nil) != (old.ImageListPullJobTemplate == nil) {
		found.AddErrors(field.Forbidden(path.Child("imageListPullJobTemplate"), "can only be changed where it is, neither added nor removed"))
	}
}

// validatePull requires jobs that end soon, since the next jobs replace them, or wait for them.
func validatePull(spec *v1beta1.ImageListPullJobSpec, path *field.Path, found *rules.Findings) {
	imagelistpulljob.ValidateSpec(spec, path, found)
	policy, at := &spec.CompletionPolicy, path.Child("completionPolicy")
	rules.OneOf(found, policy.Type, at.Child("type"), v1beta1.AlwaysCompletionPolicyType)
	if policy.TTLSecondsAfterFinished != nil {
		found.AddErrors(field.Forbidden(at.Child("ttlSecondsAfterFinished"), "the history limits say how long jobs are kept"))
	}
	if policy.ActiveDeadlineSeconds == nil {
		return
	}
	deadline, timeout := *policy.ActiveDeadlineSeconds, int64(v1beta1.DefaultPullTimeoutSeconds)
	if spec.PullPolicy != nil {
		timeout = int64(ptr.Deref(spec.PullPolicy.TimeoutSeconds, v1beta1.DefaultPullTimeoutSeconds))
	}
	if deadline > maxDeadlineSeconds || deadline < timeout {
		found.AddErrors(field.Invalid(at.Child("activeDeadlineSeconds"), deadline,
			fmt.Sprintf("must be from pullPolicy.timeoutSeconds, which is %d, to %d", timeout, maxDeadlineSeconds)))
	}
}
