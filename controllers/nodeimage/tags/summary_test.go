// SPDX-License-Identifier: Apache-2.0

package tags_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/test/waiting"
)

// The status has no observedGeneration, so right behind a change it is that of the old spec.
func TestWhatKstatusSaysOfANodeImage(t *testing.T) {
	missing := &kruise.SyncStatus{Status: kruise.SyncStatusFailed, Message: "no runtime answers"}
	for name, tc := range map[string]struct {
		status       kruise.NodeImageStatus
		want         status.Status
		reason, text string
	}{
		"no image is asked for":          {kruise.NodeImageStatus{}, waiting.Current, kruise.ImagesPulledReason, "0 of 0 tags are pulled, and 0 have failed"},
		"all tags are pulled":            {kruise.NodeImageStatus{Desired: 2, Succeeded: 2}, waiting.Current, kruise.ImagesPulledReason, "2 of 2 tags are pulled, and 0 have failed"},
		"tags are pulled":                {kruise.NodeImageStatus{Desired: 2, Succeeded: 1, Pulling: 1}, waiting.InProgress, kruise.ProgressingReason, "1 of 2 tags are pulled, and 0 have failed"},
		"one fails, and another goes on": {kruise.NodeImageStatus{Desired: 2, Failed: 1, Pulling: 1}, waiting.InProgress, kruise.ProgressingReason, "0 of 2 tags are pulled, and 1 have failed"},
		"a tag could not be pulled":      {kruise.NodeImageStatus{Desired: 2, Succeeded: 1, Failed: 1}, waiting.Failed, kruise.PullFailedReason, "1 of 2 tags are pulled, and 1 have failed"},
		"its runtime serves no image":    {kruise.NodeImageStatus{Desired: 1, Succeeded: 1, FirstSyncStatus: missing}, waiting.InProgress, kruise.ImageRuntimeMissingReason, "no runtime answers"},
	} {
		image := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Generation: 2}, Status: tc.status}
		tags.SetSummary(&image.Status, time.Unix(1_800_000_000, 0))
		got, message := waiting.JudgeObject(t, kruise.GroupVersion.WithKind("NodeImage"), image)
		ready, _ := condition.FindCondition(&image.Status, kruise.ConditionReady)
		if got != tc.want || ready.Reason != tc.reason || ready.Message != tc.text {
			t.Errorf("%s: kstatus says %s (%s), and Ready is %+v; want %s, %s, %q", name, got, message, ready, tc.want, tc.reason, tc.text)
		}
	}
}
