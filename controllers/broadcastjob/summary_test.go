// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

func TestWhatTheConditionsSumUp(t *testing.T) {
	const text = "3 of 8 pods have succeeded, 1 have failed, and 2 are active"
	with := func(t kruise.JobConditionType) func(*change) {
		return func(c *change) { c.setCondition(t, "Why", "because") }
	}
	for name, tc := range map[string]struct {
		edit func(*change)
		want kstatus.Summary
	}{
		"it runs":                     {func(*change) {}, kstatus.NewReconciling(kruise.ProgressingReason, text)},
		"it is complete":              {with(kruise.BroadcastJobComplete), kstatus.NewReady("Complete", "because")},
		"it has failed":               {with(kruise.BroadcastJobFailed), kstatus.NewStalled("Failed", "because")},
		"a failed pod has paused it":  {with(kruise.BroadcastJobPausedByFailure), kstatus.NewReconciling("PausedByFailure", "because")},
		"a policy holds it":           {with(kruise.BroadcastJobHeld), kstatus.NewReconciling(string(kruise.BroadcastJobHeld), "because")},
		"no node fits":                {with(noNodeFits), kstatus.NewReconciling(noNodeFits, "because")},
		"it is paused":                {func(c *change) { c.job.Spec.Paused = true }, kstatus.NewReconciling("Paused", text+"; spec.paused is true")},
		"it never ends, and pods run": {func(c *change) { c.job.Spec.CompletionPolicy.Type = kruise.NeverCompletionPolicyType }, kstatus.NewReconciling(kruise.ProgressingReason, text)},
		"it never ends, and all is done": {func(c *change) {
			c.job.Spec.CompletionPolicy.Type = kruise.NeverCompletionPolicyType
			c.status.Active, c.status.Succeeded = 0, 7
		}, kstatus.NewReady("NodesDone", "7 of 8 pods have succeeded, 1 have failed, and 0 are active; the job keeps on for nodes to come")},
	} {
		c := &change{job: &kruise.BroadcastJob{}, now: metav1.Now(), status: kruise.BroadcastJobStatus{Desired: 8, Succeeded: 3, Failed: 1, Active: 2}}
		tc.edit(c)
		if got := summarizeProgress(c.job, &c.status); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
