// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

const (
	keptPull       = `{"imageListPullJobTemplate":{"metadata":{},"spec":{"images":["nginx"],"completionPolicy":{}}}}`
	keptPullBeside = `{"imageListPullJobTemplate":{"metadata":{},"spec":{"images":["nginx"],"completionPolicy":{}}},"besideJobTemplate":true}`
)

func TestAdvancedCronJobThatPullsImages(t *testing.T) {
	pull := &v1beta1.ImageListPullJobTemplateSpec{Spec: v1beta1.ImageListPullJobSpec{Images: []string{"nginx"}}}
	job, broadcast := &batchv1.JobTemplateSpec{}, &v1beta1.BroadcastJobTemplateSpec{}
	type oldTemplate = CronJobTemplate
	type newTemplate = v1beta1.CronJobTemplate
	for _, tc := range []struct {
		name string
		kept string
		old  oldTemplate
		hub  newTemplate
		back bool
	}{
		{name: "a job needs no annotation", old: oldTemplate{JobTemplate: job}, hub: newTemplate{JobTemplate: job}, back: true},
		{name: "a pull is kept", kept: keptPull, hub: newTemplate{ImageListPullJobTemplate: pull}, back: true},
		{
			name: "a pull beside a job is kept", kept: keptPullBeside, back: true,
			old: oldTemplate{JobTemplate: job}, hub: newTemplate{JobTemplate: job, ImageListPullJobTemplate: pull},
		},
		{name: "a job that comes later replaces the pull", kept: keptPull, old: oldTemplate{JobTemplate: job}, hub: newTemplate{JobTemplate: job}},
		{
			name: "a broadcast job that comes later replaces the pull, even beside a job", kept: keptPullBeside,
			old: oldTemplate{JobTemplate: job, BroadcastJobTemplate: broadcast}, hub: newTemplate{JobTemplate: job, BroadcastJobTemplate: broadcast},
		},
		{name: "a job that went leaves the pull", kept: keptPullBeside, hub: newTemplate{ImageListPullJobTemplate: pull}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old := &AdvancedCronJob{Spec: AdvancedCronJobSpec{Template: tc.old}}
			hub := &v1beta1.AdvancedCronJob{Spec: v1beta1.AdvancedCronJobSpec{Template: tc.hub}}
			if tc.kept != "" {
				metav1.SetMetaDataAnnotation(&old.ObjectMeta, conversiondata.NewerKey, tc.kept)
			}
			apitest.RequireEqual(t, "to the hub", hub, apitest.Hub[v1beta1.AdvancedCronJob](t, old))
			if tc.back {
				apitest.RequireEqual(t, "from the hub", old, apitest.ConvertFromHub[AdvancedCronJob](t, hub))
			}
		})
	}
}

func TestAdvancedCronJobsSurviveTheOtherVersion(t *testing.T) {
	apitest.RoundTrip(t, newFiller(20261121), &AdvancedCronJob{}, &v1beta1.AdvancedCronJob{})
}
