// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// letIn makes a bundle that passed the gate active, or a candidate, as the mode says.
func (p *Publisher) letIn(ctx context.Context, b policy.AnyPolicyBundle, found *fetch.Fetched, candidate *bundle.Bundle) error {
	kept, err := p.Store.SaveArchive(ctx, b, found.Archive, found.Reference)
	if err != nil {
		return err
	}
	w, st := b.DesiredSpec(), b.GetStatus()
	st.Withheld = nil
	a := &policy.PolicyArtifact{
		Revision: bundle.ShortRevision(candidate.Revision), Content: candidate.Revision, Digest: found.Digest, Reference: found.Reference, KeptIn: kept,
		Generation: b.GetGeneration(), Time: metav1.NewTime(p.Clock()),
	}
	if n, ok := candidate.ManifestSequence(); ok {
		a.Sequence = &n
	}
	switch w.Mode {
	case policy.PolicyModeShadow, policy.PolicyModeCanary:
		// A revision in shadow or canary must not remain enforced everywhere.
		if st.Active != nil && st.Active.Digest == a.Digest {
			p.activateArtifact(st, nil)
		}
		a.Mode, a.Namespaces = w.Mode, w.Namespaces
		st.Candidate = a
		if w.Mode == policy.PolicyModeCanary {
			kinds, err := p.canaryKindsMessage(ctx, keyOf(b), candidate)
			if err != nil {
				return err
			}
			setAccepted(b, policy.PolicyBundleCanaryReason, fmt.Sprintf(policy.PolicyBundleCanaryMessage, a.Revision, message.ListNames(a.Namespaces), lowerFirst(activeMessage(st.ActiveRevision)))+kinds)
		} else {
			setAccepted(b, policy.PolicyBundleShadowReason, fmt.Sprintf(policy.PolicyBundleShadowMessage, a.Revision, activeMessage(st.ActiveRevision)))
		}
	default:
		st.Candidate = nil
		p.activateArtifact(st, a)
		if w.RollbackTo != "" {
			setAccepted(b, policy.PolicyBundleRollbackReason, fmt.Sprintf(policy.PolicyBundleRollbackMessage, a.Revision))
		} else {
			setAccepted(b, policy.PolicyBundleActivatedReason, fmt.Sprintf(policy.PolicyBundleActivatedMessage, a.Revision))
		}
	}
	return nil
}

// activateArtifact makes an artifact the active one, and moves the previous one to the history.
func (p *Publisher) activateArtifact(st *policy.PolicyBundleStatus, a *policy.PolicyArtifact) {
	if was := st.Active; was != nil && (a == nil || was.Digest != a.Digest) {
		st.History = append([]policy.PolicyArtifact{*was}, st.History...)
	}
	again := a != nil && st.Active != nil && st.Active.Digest == a.Digest
	st.Active = a
	switch {
	case a == nil:
		st.ActiveRevision, st.LastActivationTime = "", nil
	case !again:
		now := metav1.NewTime(p.Clock())
		st.ActiveRevision, st.LastActivationTime = a.Revision, &now
	}
	if a != nil {
		st.History = slices.DeleteFunc(st.History, func(old policy.PolicyArtifact) bool { return old.Digest == a.Digest })
	}
	st.History = st.History[:min(len(st.History), keptRevisions)]
}

// goBack enforces a stored revision, whatever the source has.
func (p *Publisher) goBack(b policy.AnyPolicyBundle, a *policy.PolicyArtifact) {
	st := b.GetStatus()
	st.Candidate, st.Withheld = nil, nil
	if st.Active == nil || st.Active.Digest != a.Digest {
		again := *a
		again.Mode, again.Namespaces = "", nil
		p.activateArtifact(st, &again)
	}
	setAccepted(b, policy.PolicyBundleRollbackReason, fmt.Sprintf(policy.PolicyBundleRollbackMessage, a.Revision))
}

// keptNames returns the names of the ControllerRevisions that are needed.
func keptNames(st *policy.PolicyBundleStatus) (out []string) {
	for _, a := range st.AllArtifacts() {
		out = append(out, a.KeptIn)
	}
	return out
}

// rolledBack returns the refusal of a revision that the status names and that a replica rolled back; nil if
// there is none.
func rolledBack(b policy.AnyPolicyBundle) *refusal {
	st := b.GetStatus()
	for _, r := range st.Replicas {
		if r.RolledBack == "" {
			continue
		}
		for _, a := range []*policy.PolicyArtifact{st.Active, st.Candidate} {
			if a.Is(r.RolledBack) {
				return &refusal{
					stage: policy.PolicyBundleActive, reason: policy.PolicyBundleRolledBackReason,
					errors: []string{fmt.Sprintf("%s rolled revision %s back: %s", r.Name, bundle.ShortRevision(r.RolledBack), r.Problem)},
				}
			}
		}
	}
	return nil
}

// rollBackArtifacts rolls a revision that one replica rolled back, back on all of them: the previous
// revision is enforced again. If there is none, all replicas withhold the revision, also replicas that
// start later: decisions that it takes part in are refused or held, as they were while it timed out.
func (p *Publisher) rollBackArtifacts(b policy.AnyPolicyBundle) {
	st := b.GetStatus()
	given := func(a *policy.PolicyArtifact) bool {
		return slices.ContainsFunc(st.Replicas, func(r policy.PolicyReplica) bool { return a.Is(r.RolledBack) })
	}
	if given(st.Candidate) {
		if st.Active == nil && st.Candidate.Mode == policy.PolicyModeCanary {
			st.Withheld = st.Candidate
		}
		st.Candidate = nil
	}
	if given(st.Active) {
		var before *policy.PolicyArtifact
		for i := range st.History {
			if !given(&st.History[i]) {
				before = st.History[i].DeepCopy()
				break
			}
		}
		bad := st.Active
		p.activateArtifact(st, before)
		st.History = slices.DeleteFunc(st.History, func(a policy.PolicyArtifact) bool { return a.Digest == bad.Digest })
		if before == nil {
			st.Withheld = bad
		}
	}
}

// countRevisions counts how many replicas enforce each revision.
func (p *Publisher) countRevisions(st *policy.PolicyBundleStatus) {
	n := map[string]int32{}
	for _, r := range st.Replicas {
		n[r.Revision]++
	}
	st.Revisions = nil
	for revision, replicas := range n {
		st.Revisions = append(st.Revisions, policy.PolicyRevisionCount{Revision: revision, Replicas: replicas})
	}
	slices.SortFunc(st.Revisions, func(a, b policy.PolicyRevisionCount) int {
		return cmp.Or(cmp.Compare(b.Replicas, a.Replicas), cmp.Compare(a.Revision, b.Revision))
	})
}

// fetchInterval is how often a source is fetched: the contents of a tag or a URL may change at any
// time, and a ConfigMap is cheap to read.
func fetchInterval(w policy.Wanted) time.Duration {
	var said *metav1.Duration
	switch {
	case w.OCI != nil:
		said = w.OCI.Interval
	case w.HTTP != nil:
		said = w.HTTP.Interval
	default:
		return 0
	}
	if said == nil {
		return 5 * time.Minute
	}
	return said.Duration
}
