// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// A bundle that is refused is stalled, unless the same object may be accepted later.
func TestWhetherARefusedBundleIsStalled(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal refusal
		stalled bool
	}{
		"it does not compile":           {refusal{stage: policy.PolicyBundleCompiled, reason: policy.PolicyBundleCompileFailedReason}, true},
		"its tests fail":                {refusal{stage: policy.PolicyBundleTestsPassed, reason: policy.PolicyBundleTestsFailedReason}, true},
		"rollbackTo names nothing":      {refusal{stage: policy.PolicyBundleActive, reason: policy.PolicyBundleRevisionUnknownReason}, true},
		"the registry does not answer":  {refusal{stage: policy.PolicyBundleFetched, reason: policy.PolicyBundleFetchFailedReason}, false},
		"its ConfigMap is not there":    {refusal{stage: policy.PolicyBundleFetched, reason: policy.PolicyBundleSourceInvalidReason}, false},
		"its artifact is not signed":    {refusal{stage: policy.PolicyBundleVerified, reason: policy.PolicyBundleSignatureInvalidReason}, false},
		"another bundle has a package":  {refusal{stage: policy.PolicyBundleContractOK, reason: policy.PolicyBundleConflictReason}, false},
		"its check took too much time":  {refusal{stage: policy.PolicyBundleTestsPassed, reason: policy.PolicyBundleLimitsExceededReason, passing: true}, false},
		"decisions would be unanswered": {refusal{stage: policy.PolicyBundleReplayOK, reason: policy.PolicyBundleReplayFailedReason, passing: true}, false},
	} {
		b := &policy.ClusterPolicyBundle{}
		setRefused(b, &tc.refusal)
		has := func(kind string) bool { return meta.IsStatusConditionTrue(b.Status.Conditions, kind) }
		if has(kruise.ConditionStalled) != tc.stalled || has(kruise.ConditionReconciling) == tc.stalled || has(policy.PolicyBundleReady) {
			t.Errorf("%s: the conditions are %+v", name, b.Status.Conditions)
		}
		setAccepted(b, policy.PolicyBundleActivatedReason, "Revision r1 is being enforced.")
		if has(kruise.ConditionStalled) || has(kruise.ConditionReconciling) || !has(policy.PolicyBundleReady) {
			t.Errorf("%s, and then it is accepted: the conditions are %+v", name, b.Status.Conditions)
		}
	}
}

// A round that refuses a bundle and then finds replicas without its keys sets Stalled twice: it keeps the time of the first round.
func TestARoundWithoutNewsKeepsTheTimesOfConditions(t *testing.T) {
	b := &policy.ClusterPolicyBundle{}
	me := policy.PolicyReplica{Name: "kruise-manager-0", Strict: policy.PolicyBundleSignatureRevokedReason, Problem: "the key is gone"}
	round := func() {
		setRefused(b, &refusal{stage: policy.PolicyBundleFetched, reason: policy.PolicyBundleFetchFailedReason, errors: []string{"no answer"}})
		judgeReplicas(b, me)
	}
	round()
	stalled := meta.FindStatusCondition(b.Status.Conditions, kruise.ConditionStalled)
	if stalled == nil || stalled.Reason != policy.PolicyBundleSignatureRevokedReason {
		t.Fatalf("the conditions are %+v", b.Status.Conditions)
	}
	before := copyBundle(b)
	for i := range before.GetStatus().Conditions {
		before.GetStatus().Conditions[i].LastTransitionTime = metav1.NewTime(time.Unix(1_800_000_000, 0))
	}
	round()
	keepTransitionTimes(before, b)
	for _, c := range b.Status.Conditions {
		if c.LastTransitionTime.Unix() != 1_800_000_000 {
			t.Errorf("the time of %s is new", c.Type)
		}
	}
}
