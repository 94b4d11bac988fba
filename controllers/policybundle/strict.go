// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/engine/decision"
)

// notePoints writes which points the revisions take part in that this replica runs, for
// a replica that cannot. Other bundles may refer to what a bundle has at any time, so the
// points are noted again each time, and none is taken back.
func (r *Reconciler) notePoints(b policy.AnyPolicyBundle) {
	st := b.GetStatus()
	for _, a := range []*policy.PolicyArtifact{st.Active, st.Candidate} {
		if a == nil || a.Mode == policy.PolicyModeShadow {
			continue
		}
		a.Points = joinPoints(a.Points, r.Host.DecisionPoints(keyOf(b), a))
	}
}

// joinPoints are those that were noted and those that there are now, sorted; nil, which represents all, until some are known.
func joinPoints(noted, now []string) []string {
	if now == nil {
		return noted
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(noted, now))))
}

// isStrictReason reports whether Ready is False only because some replicas cannot run
// what was let in.
func isStrictReason(reason string) bool {
	return reason == policy.PolicyBundleNotLoadedReason || reason == policy.PolicyBundleSignatureRevokedReason || reason == policy.PolicyBundleEndsProcessReason
}

// judgeReplicas makes Ready False where replicas, this one as it is now among them,
// cannot run what was let in and answer its points by their strict fallbacks; and True
// again when all can. A refusal of the newest files is the greater news, unless it is
// for the same keys.
func judgeReplicas(b policy.AnyPolicyBundle, me policy.PolicyReplica) {
	st, ready := b.GetStatus(), findCondition(b, policy.PolicyBundleReady)
	if ready == nil {
		return
	}
	replicas := append(slices.DeleteFunc(slices.Clone(st.Replicas), func(r policy.PolicyReplica) bool { return r.Name == me.Name }), me)
	strict := slices.DeleteFunc(slices.Clone(replicas), func(r policy.PolicyReplica) bool { return r.Strict == "" })
	told := st.Replicas
	st.Replicas = replicas
	defer func() { st.Replicas = told }() // each replica writes its own
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
	setCondition(b, policy.PolicyBundleReady, metav1.ConditionFalse, first.Strict, message)
}
