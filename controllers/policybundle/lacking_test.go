// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

func TestABundleThatNoReplicaEnforcesIsNotReady(t *testing.T) {
	without := policy.PolicyReplica{Name: "a", Problem: "it does not compile"}
	with := policy.PolicyReplica{Name: "b", Revision: "r1"}
	for name, tc := range map[string]struct {
		replicas []policy.PolicyReplica
		status   metav1.ConditionStatus
		reason   string
		told     bool
	}{
		"all enforce it":       {[]policy.PolicyReplica{with}, metav1.ConditionTrue, policy.PolicyBundleActivatedReason, false},
		"none says yet":        {nil, metav1.ConditionTrue, policy.PolicyBundleActivatedReason, false},
		"one does not":         {[]policy.PolicyReplica{without, with}, metav1.ConditionTrue, policy.PolicyBundleActivatedReason, true},
		"none enforces it":     {[]policy.PolicyReplica{without}, metav1.ConditionFalse, policy.PolicyBundleNotEnforcedReason, true},
		"one is not there yet": {[]policy.PolicyReplica{{Name: "c"}}, metav1.ConditionTrue, policy.PolicyBundleActivatedReason, false},
		"another is not there": {[]policy.PolicyReplica{without, {Name: "c"}}, metav1.ConditionTrue, policy.PolicyBundleActivatedReason, true},
		"it was rolled back":   {[]policy.PolicyReplica{{Name: "a", Problem: "slow", RolledBack: "r1"}}, metav1.ConditionTrue, policy.PolicyBundleActivatedReason, false},
	} {
		b := &policy.PolicyBundle{}
		b.Status.ActiveRevision, b.Status.Replicas = "r1", tc.replicas
		setAccepted(b, policy.PolicyBundleActivatedReason, "Revision r1 is being enforced.")
		ready := meta.FindStatusCondition(b.Status.Conditions, policy.PolicyBundleReady)
		if ready.Status != tc.status || ready.Reason != tc.reason || strings.Contains(ready.Message, "do not enforce it, such as a: it does not compile.") != tc.told {
			t.Errorf("%s: %s %s %q", name, ready.Status, ready.Reason, ready.Message)
		}
	}
}
