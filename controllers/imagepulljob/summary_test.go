// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

func TestWhatTheConditionsSumUp(t *testing.T) {
	held := func(reason string) func(*kruise.ImagePullJob) {
		return func(job *kruise.ImagePullJob) {
			job.Status.Conditions = []metav1.Condition{{Type: kruise.ImagePullJobHeld, Status: metav1.ConditionTrue, Reason: reason, Message: "because"}}
		}
	}
	for name, tc := range map[string]struct {
		edit func(*kruise.ImagePullJob)
		want kstatus.Summary
	}{
		"nodes pull":            {func(*kruise.ImagePullJob) {}, kstatus.NewReconciling(kruise.ProgressingReason, "3 of 4 nodes have pulled the image")},
		"a policy holds it":     {held("Night"), kstatus.NewReconciling(kruise.ImagePullJobHeld, "because")},
		"the image has no name": {held(kruise.InvalidImageReason), kstatus.NewStalled(kruise.InvalidImageReason, "because")},
		"all have pulled it": {func(job *kruise.ImagePullJob) {
			job.Status.Succeeded, job.Status.CompletionTime = 4, ptr.To(metav1.Now())
		}, kstatus.NewReady("ImagesPulled", "4 of 4 nodes have pulled the image")},
		"all have pulled it, and it never ends": {func(job *kruise.ImagePullJob) {
			job.Status.Succeeded, job.Spec.CompletionPolicy.Type = 4, kruise.NeverCompletionPolicyType
		}, kstatus.NewReady("ImagesPulled", "4 of 4 nodes have pulled the image")},
		"a node has given up": {func(job *kruise.ImagePullJob) {
			job.Status.Failed, job.Status.CompletionTime, job.Status.Message = 1, ptr.To(metav1.Now()), "job has completed"
		}, kstatus.NewStalled("PullFailed", "3 of 4 nodes have pulled the image, and 1 have failed: job has completed")},
	} {
		job := &kruise.ImagePullJob{Status: kruise.ImagePullJobStatus{Desired: 4, Succeeded: 3}}
		tc.edit(job)
		if got := summarizeProgress(job, &job.Status); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
