// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

func TestWhatTheConditionsSumUp(t *testing.T) {
	const text = "the containers of 1 of 4 pods have succeeded, those of 1 have failed, and those of 2 are running"
	ended := func(phase kruise.EphemeralJobPhase) func(*change) {
		return func(c *change) { c.status.Phase, c.status.CompletionTime = phase, ptr.To(metav1.Now()) }
	}
	for name, tc := range map[string]struct {
		edit func(*change)
		want kstatus.Summary
	}{
		"it runs":       {func(*change) {}, kstatus.NewReconciling(v1beta1.ProgressingReason, text)},
		"it is paused":  {func(c *change) { c.job.Spec.Paused = true }, kstatus.NewReconciling("Paused", text+"; spec.paused is true")},
		"it succeeded":  {ended(kruise.EphemeralJobSucceeded), kstatus.NewReady("JobSucceeded", text)},
		"it has failed": {ended(kruise.EphemeralJobFailed), kstatus.NewStalled("JobFailed", text)},
		"it has failed, for a reason": {func(c *change) {
			ended(kruise.EphemeralJobError)(c)
			c.setCondition(kruise.EphemeralJobConditionError, "Why", "the template has no containers")
		}, kstatus.NewStalled("JobError", "the template has no containers")},
		"a container could not be added, and it goes on": {func(c *change) {
			c.setCondition(kruise.EphemeralJobConditionFailed, "Why", "refused")
		}, kstatus.NewReconciling("JobFailed", "refused")},
		"a policy holds it": {func(c *change) { c.setCondition(kruise.EphemeralJobHeld, "Why", "frozen") }, kstatus.NewReconciling(string(kruise.EphemeralJobHeld), "frozen")},
	} {
		c := &change{job: &kruise.EphemeralJob{}, now: metav1.Now(), status: kruise.EphemeralJobStatus{Match: 4, Succeeded: 1, Failed: 1, Running: 2}}
		tc.edit(c)
		if got := c.summarizeProgress(); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
