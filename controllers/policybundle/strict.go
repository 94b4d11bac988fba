// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/engine/decision"
)

// notePoints records which points the revisions that this replica runs take part in, for replicas that
// cannot load them. Other bundles may begin to refer to a bundle at any time, so the points are
// recorded again each time, and none is removed.
func (r *Reconciler) notePoints(b policy.AnyPolicyBundle) {
	st := b.GetStatus()
	for _, a := range []*policy.PolicyArtifact{st.Active, st.Candidate} {
		if a == nil || a.Mode == policy.PolicyModeShadow {
			continue
		}
		a.Points = joinPoints(a.Points, r.Host.DecisionPoints(keyOf(b), a))
	}
}

// joinPoints returns the recorded points and the current ones, sorted; nil, which means all points, until some are known.
func joinPoints(noted, now []string) []string {
	if now == nil {
		return noted
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(noted, now))))
}

// isStrictReason reports whether Ready is False only because some replicas cannot run the accepted
// revision.
func isStrictReason(reason string) bool {
	return reason == policy.PolicyBundleNotLoadedReason || reason == policy.PolicyBundleSignatureRevokedReason || reason == policy.PolicyBundleEndsProcessReason
}

// judgeReplicas sets Ready to False if replicas, including this one in its current state, cannot run
// the accepted revision and answer its points by their strict fallbacks, and to True again when all
// replicas can. A refusal of the newest files takes precedence, unless it is because of the same keys.
func judgeReplicas(b policy.AnyPolicyBundle, me policy.PolicyReplica) {
	st, ready := b.GetStatus(), findCondition(b, policy.PolicyBundleReady)
	if ready == nil {
		return
	}
	replicas := append(slices.DeleteFunc(slices.Clone(st.Replicas), func(r policy.PolicyReplica) bool { return r.Name == me.Name }), me)
	strict := slices.DeleteFunc(slices.Clone(replicas), func(r policy.PolicyReplica) bool { return r.Strict == "" })
	told := st.Replicas
	st.Replicas = replicas
	defer func() { st.Replicas = told }() // each replica writes its own entry
	ours := isStrictReason(ready.Reason) || ready.Reason == policy.PolicyBundleNotEnforcedReason
	waits := ready.Status == metav1.ConditionTrue || ours
	if len(strict) == 0 {
		if active := findCondition(b, policy.PolicyBundleActive); ours && active != nil {
			setAccepted(b, active.Reason, active.Message)
		}
		return
	}
	first := strict[0]
	if i := slices.IndexFunc(strict, func(r policy.PolicyReplica) bool { return r.Strict == policy.PolicyBundleSignatureRevokedReason }); i >= 0 {
		first = strict[i]
	}
	revoked := first.Strict == policy.PolicyBundleSignatureRevokedReason
	if !waits && !(revoked && (ready.Reason == policy.PolicyBundleSignatureInvalidReason || ready.Reason == policy.PolicyBundleFetchFailedReason)) {
		return
	}
	revision := st.ActiveRevision
	if st.Candidate != nil && st.Candidate.Mode == policy.PolicyModeCanary && (revision == "" || first.Revision == revision) {
		revision = st.Candidate.Revision
	}
	message := fmt.Sprintf(policy.PolicyBundleStrictMessage, revision, len(strict), len(replicas), first.Name, strings.TrimSuffix(decision.TruncateText(first.Problem, longest), "."))
	if revoked {
		setCondition(b, policy.PolicyBundleVerified, metav1.ConditionFalse, first.Strict, message)
	}
	summarize := kstatus.NewStalled
	if first.Strict == policy.PolicyBundleNotLoadedReason { // the replica tries again
		summarize = kstatus.NewReconciling
	}
	setReady(b, summarize(first.Strict, message))
}
