// SPDX-License-Identifier: Apache-2.0

package imagelistpulljob

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

func TestWhatTheConditionsSumUp(t *testing.T) {
	end := ptr.To(metav1.Now())
	failed := []kruise.FailedImageStatus{{Name: "redis:7", Message: "1 of 12 nodes have not pulled the image: node-3."}}
	for name, tc := range map[string]struct {
		policy kruise.CompletionPolicyType
		status kruise.ImageListPullJobStatus
		want   kstatus.Summary
	}{
		"nodes pull":       {"", kruise.ImageListPullJobStatus{Desired: 2, Succeeded: 1}, kstatus.NewReconciling(kruise.ProgressingReason, "1 of 2 images are pulled by all nodes")},
		"all are pulled":   {"", kruise.ImageListPullJobStatus{Desired: 2, Succeeded: 2, CompletionTime: end}, kstatus.NewReady("ImagesPulled", "2 of 2 images are pulled by all nodes")},
		"it never ends":    {kruise.NeverCompletionPolicyType, kruise.ImageListPullJobStatus{Desired: 2, Succeeded: 2}, kstatus.NewReady("ImagesPulled", "2 of 2 images are pulled by all nodes")},
		"one has failed":   {"", kruise.ImageListPullJobStatus{Desired: 2, Succeeded: 1, CompletionTime: end, FailedImageStatuses: failed}, kstatus.NewStalled("PullFailed", "1 of 2 images are pulled by all nodes; redis:7: 1 of 12 nodes have not pulled the image: node-3.")},
		"one fails so far": {"", kruise.ImageListPullJobStatus{Desired: 2, Succeeded: 1, FailedImageStatuses: failed}, kstatus.NewReconciling(kruise.ProgressingReason, "1 of 2 images are pulled by all nodes")},
	} {
		list := &kruise.ImageListPullJob{Spec: kruise.ImageListPullJobSpec{}, Status: tc.status}
		list.Spec.CompletionPolicy.Type = tc.policy
		if got := summarizeProgress(list, &list.Status); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
