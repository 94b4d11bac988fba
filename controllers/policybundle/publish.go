// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// Publisher computes what every replica should run of a bundle, and sets it in the bundle's status.
// Only the leader uses it.
type Publisher struct {
	// Platform fetches for ClusterPolicyBundles, Tenants for PolicyBundles.
	Platform, Tenants *fetch.Fetcher
	Gate              *gate.Gate
	Store             bundlerevision.Store
	Host              *policyhost.Host
	// Records returns recent decisions, which the gate makes again with a new bundle.
	Records func() []decision.Record
	Clock   func() time.Time
	// WriteStatus writes the check of a bundle before it begins.
	WriteStatus func(ctx context.Context, b policy.AnyPolicyBundle, c *policy.PolicyCheck) error

	turn   turn
	judged judgeLimits
	mu     sync.Mutex
	seen   map[Key]*seen
}

// seen is what is remembered of a bundle between reconciles, so that a reconcile without changes is
// cheap.
type seen struct {
	generation int64
	at         time.Time // of the last fetch of the source
	fetched    *fetch.Fetched

	// The archive that was refused, the other bundles at that time, and until when if the refusal may pass.
	digest, beside string
	until          time.Time
	refused        *refusal

	// unpruned is true while archives may be stored that the status does not name any more.
	unpruned bool
}

// passingHold is how long a refusal of a bundle counts that was too slow or too large to be checked,
// or that could not make recent decisions: the machine may have been busy, and the recent decisions
// change.
const passingHold = 10 * time.Minute

// keptRevisions is how many revisions before the active one are kept for a rollback.
const keptRevisions = 5

// PublishStatus brings the status of a bundle up to its spec and its source. An error is not about the
// bundle, and should be retried.
func (p *Publisher) PublishStatus(ctx context.Context, b policy.AnyPolicyBundle) error {
	before := keptNames(b.GetStatus())
	if err := p.computeStatus(ctx, b); err != nil {
		return err
	}
	if !slices.Equal(before, keptNames(b.GetStatus())) {
		p.bundleState(keyOf(b), b.GetGeneration()).unpruned = true
	}
	return nil
}

// PruneArchives deletes the archives of a bundle that are not needed any more, once its status is written.
func (p *Publisher) PruneArchives(ctx context.Context, b policy.AnyPolicyBundle) error {
	s := p.bundleState(keyOf(b), b.GetGeneration())
	if !s.unpruned {
		return nil
	}
	if err := p.Store.PruneArchives(ctx, b, keptNames(b.GetStatus())...); err != nil {
		return err
	}
	s.unpruned = false
	return nil
}

func (p *Publisher) computeStatus(ctx context.Context, b policy.AnyPolicyBundle) error {
	key := keyOf(b)
	w, st := b.DesiredSpec(), b.GetStatus()
	s := p.bundleState(key, b.GetGeneration())
	p.countRevisions(st)
	if r := rolledBack(b); r != nil {
		p.rollBackArtifacts(b)
		setRefused(b, r)
	}
	if w.RollbackTo != "" {
		there, err := p.rollbackArtifact(ctx, b, st.FindArtifact(w.RollbackTo))
		if err != nil {
			return err
		}
		if there != nil {
			p.goBack(b, there)
			st.ObservedGeneration = b.GetGeneration()
			return nil
		}
	}
	found, err := p.fetchIfDue(ctx, b, s)
	if err != nil {
		return p.setFetchFailed(ctx, b, err)
	}
	beside := p.Host.PeerBundles(key)
	if isStatusFinal(b, found) {
		if s.refused = p.refuseDisplaced(b, found, beside); s.refused == nil {
			return p.restoreArchive(ctx, b, found)
		}
		s.digest, s.beside, s.until = found.Digest, beside.Revision(), time.Time{}
		p.activateArtifact(st, nil)
	}
	if s.refused == nil || s.digest != found.Digest || s.beside != beside.Revision() || !s.until.IsZero() && p.Clock().After(s.until) {
		candidate, r, err := p.admitFetched(ctx, b, found, beside)
		if err != nil {
			return err
		}
		s.digest, s.beside, s.until, s.refused = found.Digest, beside.Revision(), time.Time{}, r
		recordFetched(st, found, candidate, p.Clock())
		if r == nil {
			if err := p.letIn(ctx, b, found, candidate); err != nil {
				return err
			}
		} else if r.passing {
			s.until = p.Clock().Add(passingHold)
		}
	}
	if s.refused != nil {
		setRefused(b, s.refused)
	}
	st.ObservedGeneration = b.GetGeneration()
	return nil
}

// rollbackArtifact returns the artifact to roll back to, or nil if its archive is lost, such as after
// the manager's namespace was deleted: replicas could not run it. A lost artifact is removed from the
// history.
func (p *Publisher) rollbackArtifact(ctx context.Context, b policy.AnyPolicyBundle, a *policy.PolicyArtifact) (*policy.PolicyArtifact, error) {
	st := b.GetStatus()
	if a == nil || st.Active != nil && st.Active.Digest == a.Digest {
		return a, nil
	}
	_, err := p.Store.LoadArchive(ctx, b, a)
	var lost bundlerevision.LostError
	if errors.As(err, &lost) {
		st.History = slices.DeleteFunc(st.History, func(old policy.PolicyArtifact) bool { return old.Digest == a.Digest })
		return nil, nil
	}
	return a, err
}

// refuseDisplaced returns why a bundle that was accepted may not stay: a bundle of the platform has
// one of its packages by now.
func (p *Publisher) refuseDisplaced(b policy.AnyPolicyBundle, found *fetch.Fetched, beside bundle.Set) *refusal {
	key := keyOf(b)
	if st := b.GetStatus(); st.Active == nil || st.Active.Digest != found.Digest || key.Namespace == "" || p.Host.EnforcedBundle(key) != nil {
		return nil
	}
	mine, err := policyhost.Read(b, found.Archive, nil)
	if err != nil {
		return refuseUnreadable(err)
	}
	return refuseConflicting(mine, beside)
}

func refuseConflicting(b *bundle.Bundle, beside bundle.Set) *refusal {
	var conflicts module.Problems
	if errors.As(append(slices.Clone(beside), b).CheckConflicts(), &conflicts) {
		return &refusal{stage: policy.PolicyBundleContractOK, reason: policy.PolicyBundleConflictReason, errors: problemLines(conflicts)}
	}
	return nil
}

// restoreArchive stores an archive again that a replica did not find, if the source still has it.
func (p *Publisher) restoreArchive(ctx context.Context, b policy.AnyPolicyBundle, found *fetch.Fetched) error {
	st := b.GetStatus()
	if !slices.ContainsFunc(st.Replicas, func(r policy.PolicyReplica) bool { return r.Problem != "" && r.RolledBack == "" }) {
		return nil
	}
	for _, a := range st.AllArtifacts() {
		if a.Digest == found.Digest {
			_, err := p.Store.SaveArchive(ctx, b, found.Archive, found.Reference)
			return err
		}
	}
	return nil
}

// ForgetBundle drops what is remembered of a bundle that is gone.
func (p *Publisher) ForgetBundle(key Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, key)
}

func keyOf(b policy.AnyPolicyBundle) Key {
	return Key{Namespace: b.GetNamespace(), Name: b.GetName()}
}

// bundleState returns what is remembered of a bundle. After a change of the spec the bundle is checked
// again, but an archive that was fetched is not fetched again.
func (p *Publisher) bundleState(key Key, generation int64) *seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[Key]*seen{}
	}
	s := p.seen[key]
	if s == nil || s.generation != generation {
		fresh := &seen{generation: generation}
		if s != nil {
			fresh.fetched, fresh.unpruned = s.fetched, s.unpruned
		}
		s = fresh
		p.seen[key] = s
	}
	return s
}

// isStatusFinal reports whether the status is about the current contents of the source, and final.
func isStatusFinal(b policy.AnyPolicyBundle, found *fetch.Fetched) bool {
	st := b.GetStatus()
	if st.ObservedGeneration != b.GetGeneration() || st.Fetched == nil || st.Fetched.Digest != found.Digest {
		return false
	}
	if c := findCondition(b, policy.PolicyBundleReady); c == nil || c.ObservedGeneration != b.GetGeneration() {
		return false
	} else if c.Reason == policy.PolicyBundleRolledBackReason {
		return true
	}
	a := st.Active
	if st.Candidate != nil || b.DesiredSpec().Mode == policy.PolicyModeShadow || b.DesiredSpec().Mode == policy.PolicyModeCanary {
		a = st.Candidate
	}
	ready := findCondition(b, policy.PolicyBundleReady)
	return a != nil && a.Digest == found.Digest && (ready.Status == metav1.ConditionTrue || isStrictReason(ready.Reason))
}

func findCondition(b policy.AnyPolicyBundle, name string) *metav1.Condition {
	for i, c := range b.GetStatus().Conditions {
		if c.Type == name {
			return &b.GetStatus().Conditions[i]
		}
	}
	return nil
}

// recordFetched writes to the status what the source has.
func recordFetched(st *policy.PolicyBundleStatus, found *fetch.Fetched, b *bundle.Bundle, now time.Time) {
	if st.Fetched == nil || st.Fetched.Digest != found.Digest {
		st.Fetched = &policy.FetchedPolicy{Digest: found.Digest, Time: metav1.NewTime(now)}
	}
	st.Fetched.Reference = found.Reference
	if b != nil {
		st.Fetched.Revision = bundle.ShortRevision(b.Revision)
	}
}

// admitFetched takes what was fetched through the stages of the gate.
func (p *Publisher) admitFetched(ctx context.Context, b policy.AnyPolicyBundle, found *fetch.Fetched, beside bundle.Set) (*bundle.Bundle, *refusal, error) {
	w, st := b.DesiredSpec(), b.GetStatus()
	candidate, err := policyhost.Read(b, found.Archive, policyhost.NewVerification(w.Verification))
	if err != nil {
		return nil, refuseUnreadable(err), nil
	}
	if st.Active != nil && st.Active.Sequence != nil && !strings.HasPrefix(candidate.Revision, orNothing(w.RollbackTo)) {
		if err := candidate.FollowsSequence(*st.Active.Sequence); err != nil {
			so := "to go back on purpose set spec.rollbackTo: " + bundle.ShortRevision(candidate.Revision)
			if st.Active.Is(candidate.Revision) {
				so = "its files are those that are active, so there is nothing to go back to"
			}
			return candidate, &refusal{stage: policy.PolicyBundleVerified, reason: policy.PolicyBundleOlderReason, errors: []string{fmt.Sprintf("%v; %s", err, so)}}, nil
		}
	}
	if w.RollbackTo != "" && !strings.HasPrefix(candidate.Revision, w.RollbackTo) {
		return candidate, &refusal{stage: policy.PolicyBundleActive, reason: policy.PolicyBundleRevisionUnknownReason, errors: []string{
			fmt.Sprintf("spec.rollbackTo names %s, which is not kept and not what the source has (%s); kept are %s", w.RollbackTo, bundle.ShortRevision(candidate.Revision), st.KeptRevisions())}}, nil
	}
	if r := refuseConflicting(candidate, beside); r != nil {
		return candidate, r, nil
	}
	if r := refuseConflicting(candidate, p.Host.WithheldBeside(keyOf(b))); r != nil {
		r.passing = true // the refusal ends when the bundle that has the package is changed or deleted
		return candidate, r, nil
	}
	if r := refuseEndless(b, found); r != nil {
		b.GetStatus().Checking.Phase = policy.PolicyCheckGivenUp
		return candidate, r, nil
	}
	err = p.runGateCheck(ctx, b, found, candidate, beside)
	if ctx.Err() != nil { // the gate takes the end of this process for a timeout
		return nil, nil, fmt.Errorf("admitting bundle %s: %w", keyOf(b), ctx.Err())
	}
	var refused *gate.RefusedError
	if errors.As(err, &refused) {
		stage, reason := stageOf(refused.Stage)
		if refused.Stage == gate.Limits {
			reason = policy.PolicyBundleLimitsExceededReason
			if refused.LimitedIn != "" {
				stage, _ = stageOf(refused.LimitedIn)
			}
		}
		return candidate, &refusal{stage: stage, reason: reason, errors: problemLines(refused.Problems), passing: refused.Stage == gate.Limits || refused.Stage == gate.Replay}, nil
	}
	return candidate, nil, err
}

// orNothing replaces an empty prefix with one that nothing begins with.
func orNothing(prefix string) string {
	if prefix == "" {
		return "-"
	}
	return prefix
}

// refuseUnreadable returns why an archive is no valid bundle.
func refuseUnreadable(err error) *refusal {
	var unsigned bundle.SignatureError
	var problems module.Problems
	switch {
	case errors.As(err, &unsigned):
		return &refusal{stage: policy.PolicyBundleVerified, reason: policy.PolicyBundleSignatureInvalidReason, errors: []string{unsigned.Error()}}
	case errors.As(err, &problems):
		return &refusal{stage: policy.PolicyBundleCompiled, reason: policy.PolicyBundleCompileFailedReason, errors: problemLines(problems)}
	}
	return &refusal{stage: policy.PolicyBundleFetched, reason: policy.PolicyBundleSourceInvalidReason, errors: []string{err.Error()}}
}
