// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// newerAdvancedCronJob is the template that only v1beta1 has, and whether others stood beside it: one that comes later
// replaces it, for there can be only one. OpenKruise fails the conversion instead, and with it every list of v1alpha1.
type newerAdvancedCronJob struct {
	ImageListPullJobTemplate   *v1beta1.ImageListPullJobTemplateSpec `json:"imageListPullJobTemplate,omitempty"`
	BesideJobTemplate          bool                                  `json:"besideJobTemplate,omitempty"`
	BesideBroadcastJobTemplate bool                                  `json:"besideBroadcastJobTemplate,omitempty"`
}

// ConvertTo fills the hub.
func (in *AdvancedCronJob) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.AdvancedCronJob)
	if !ok {
		return fmt.Errorf("converting to %T: an AdvancedCronJob is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta, out.Status = src.ObjectMeta, src.Status
	out.Spec = v1beta1.AdvancedCronJobSpec{
		Schedule: src.Spec.Schedule, TimeZone: src.Spec.TimeZone,
		StartingDeadlineSeconds: src.Spec.StartingDeadlineSeconds, ConcurrencyPolicy: src.Spec.ConcurrencyPolicy,
		Paused: src.Spec.Paused, SuccessfulJobsHistoryLimit: src.Spec.SuccessfulJobsHistoryLimit,
		FailedJobsHistoryLimit: src.Spec.FailedJobsHistoryLimit,
		Template: v1beta1.CronJobTemplate{
			JobTemplate: src.Spec.Template.JobTemplate, BroadcastJobTemplate: src.Spec.Template.BroadcastJobTemplate,
		},
	}
	var newer newerAdvancedCronJob
	if conversiondata.RestoreFields(&out.Annotations, conversiondata.NewerKey, &newer) && !newer.isTemplateReplaced(&out.Spec.Template) {
		out.Spec.Template.ImageListPullJobTemplate = newer.ImageListPullJobTemplate
	}
	return nil
}

// ConvertFrom reads the hub.
func (in *AdvancedCronJob) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.AdvancedCronJob)
	if !ok {
		return fmt.Errorf("converting from %T: an AdvancedCronJob is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta, in.Status = src.ObjectMeta, src.Status
	template := &src.Spec.Template
	in.Spec = AdvancedCronJobSpec{
		Schedule: src.Spec.Schedule, TimeZone: src.Spec.TimeZone,
		StartingDeadlineSeconds: src.Spec.StartingDeadlineSeconds, ConcurrencyPolicy: src.Spec.ConcurrencyPolicy,
		Paused: src.Spec.Paused, SuccessfulJobsHistoryLimit: src.Spec.SuccessfulJobsHistoryLimit,
		FailedJobsHistoryLimit: src.Spec.FailedJobsHistoryLimit,
		Template:               CronJobTemplate{JobTemplate: template.JobTemplate, BroadcastJobTemplate: template.BroadcastJobTemplate},
	}
	var newer newerAdvancedCronJob
	if template.ImageListPullJobTemplate != nil {
		newer = newerAdvancedCronJob{
			ImageListPullJobTemplate: template.ImageListPullJobTemplate,
			BesideJobTemplate:        template.JobTemplate != nil, BesideBroadcastJobTemplate: template.BroadcastJobTemplate != nil,
		}
	}
	return conversiondata.StoreFields(&in.Annotations, conversiondata.NewerKey, newer)
}

// isTemplateReplaced tells whether a v1alpha1 client has set another template since.
func (n *newerAdvancedCronJob) isTemplateReplaced(template *v1beta1.CronJobTemplate) bool {
	return template.JobTemplate != nil && !n.BesideJobTemplate ||
		template.BroadcastJobTemplate != nil && !n.BesideBroadcastJobTemplate
}
