// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/module"
)

// SyncBundle makes a bundle take part as its status says, and returns what this process runs of it
// now. If a revision cannot be loaded, the active copy, or the one on disk, replaces it. If there is
// none, the points that the bundle takes part in are answered by their strict fallbacks. An error
// should be retried.
func (h *Host) SyncBundle(ctx context.Context, b policy.AnyPolicyBundle) (policy.PolicyReplica, error) {
	key, st := keyOf(b), b.GetStatus()
	me := policy.PolicyReplica{Name: h.name}
	want, problem, err := h.wantedStages(ctx, b)
	if err == nil {
		err = h.putStages(ctx, key, want)
	}
	if isUnfit(err) { // the bundle cannot decide together with the others
		problem = err
		err = h.putStages(ctx, key, unfitStages(b, h.library.BundleStages(key), want, problem))
	}
	now := h.library.BundleStages(key)
	var given engine.RolledBackError
	switch {
	case errors.As(err, &given):
		me.RolledBack = rolledBackContent(want, given)
		problem = fmt.Errorf("%w%s", err, h.withheldMessage(now.Withheld))
	case err != nil:
		problem = err
	}
	for _, a := range []*policy.PolicyArtifact{st.Active, st.Candidate, st.Withheld} {
		if a != nil {
			h.library.marks.scheduleClear(contentOf(a))
		}
	}
	if now.Enforced != nil {
		me.Revision = bundle.ShortRevision(now.Enforced.Revision)
	}
	if problem := h.engine.ActiveSnapshot().NamespaceProblem(key.Namespace); problem != nil && err == nil && now.Enforced != nil {
		me.Revision, me.Problem = "", problem.Error() // it does not decide: the strict fallbacks do
	}
	switch {
	case now.Canary != nil:
		me.Candidate = bundle.ShortRevision(now.Canary.Revision)
	case now.Shadow != nil:
		me.Candidate = bundle.ShortRevision(now.Shadow.Revision)
		me.Shadow = h.shadowStatus(key)
	}
	if problem != nil {
		me.Problem = problem.Error()
	}
	if len(now.Missing) > 0 && problem != nil {
		me.Strict = whyStrict(problem)
	}
	if err != nil && !isPermanent(err) {
		return me, err
	}
	return me, nil
}

func (h *Host) putStages(ctx context.Context, key Key, want Stages) error {
	if stagesMatch(h.library.BundleStages(key), want) {
		return nil
	}
	err := h.library.PutStages(ctx, key, want)
	h.reportChanged(h.library.DrainRemoved()) // bundles of namespaces that conflict with this one
	return err
}

// isUnfit reports whether an error means that a bundle cannot decide together with the others.
func isUnfit(err error) bool {
	return errors.As(err, new(module.Problems)) || errors.As(err, new(engine.TooLargeError)) || errors.As(err, new(engine.UnfitError)) || errors.As(err, new(engine.SlowError))
}

// isPermanent reports whether an error stays until a user changes something.
func isPermanent(err error) bool {
	return errors.As(err, new(engine.RolledBackError)) || isUnfit(err) || errors.As(err, new(bundlerevision.LostError)) || errors.As(err, new(bundle.SignatureError)) ||
		errors.As(err, new(unreadableError)) || endsProcess(err)
}

// rolledBackContent is the content of the revision that the status names but this replica has rolled
// back.
func rolledBackContent(want Stages, given engine.RolledBackError) string {
	for _, b := range []*bundle.Bundle{want.Canary, want.Enforced} {
		if b != nil && isOf(bundle.Set{b}, given) {
			return b.Revision
		}
	}
	return ""
}

// contentOf is the content of an artifact, or the beginning of it in a status that an older manager
// has written.
func contentOf(a *policy.PolicyArtifact) string { return cmp.Or(a.Content, a.Revision) }

// withheldMessage says which decisions the policies do not answer while a bundle is withheld. The
// bundle may be nil.
func (h *Host) withheldMessage(withheld *bundle.Bundle) string {
	if withheld == nil {
		return ""
	}
	var points []string
	for _, p := range h.engine.PointsWithheld(withheld) {
		points = append(points, string(p))
	}
	if len(points) == 0 {
		return ""
	}
	return fmt.Sprintf("; until then decisions of %s that it takes part in are refused or held", strings.Join(points, ", "))
}

// stagesMatch compares bundles by content, and canaries by their namespaces too.
func stagesMatch(now, want Stages) bool {
	return bundlesMatch(now.Enforced, want.Enforced) && bundlesMatch(now.Canary, want.Canary) && bundlesMatch(now.Shadow, want.Shadow) &&
		bundlesMatch(now.Withheld, want.Withheld) && slices.EqualFunc(now.Missing, want.Missing, engine.Missing.Equal)
}

// wantedStages loads the revisions that the status names. A revision that is loaded already is not
// loaded again. problem is why another revision is used, or none; a retry helps only after a change.
func (h *Host) wantedStages(ctx context.Context, b policy.AnyPolicyBundle) (want Stages, problem, err error) {
	st, now := b.GetStatus(), h.library.BundleStages(keyOf(b))
	if st.ObservedGeneration == 0 {
		return now, nil, nil // the bundle is not published yet: only the copy on disk is known
	}
	decides := func(a *policy.PolicyArtifact, now *bundle.Bundle) (*bundle.Bundle, error) {
		found, failed := h.loadArtifact(ctx, b, a, now)
		if failed == nil || !isPermanent(failed) {
			return found, failed
		}
		problem = failed
		if found = h.findReplacement(b, a, now, failed); found == nil {
			want.Missing = append(want.Missing, missingOf(b, a, failed))
		}
		return found, nil
	}
	if a := st.Active; a != nil {
		if want.Enforced, err = decides(a, now.Enforced); err != nil {
			return now, nil, err
		}
	}
	switch a := st.Candidate; {
	case a == nil:
	case a.Mode == policy.PolicyModeCanary:
		if want.Canary, err = decides(a, now.Canary); err != nil {
			return now, nil, err
		}
	default:
		want.Shadow, err = h.loadArtifact(ctx, b, a, now.Shadow)
		if err != nil && !isPermanent(err) {
			return now, nil, err
		}
		if err != nil { // a shadow decides nothing
			problem = err
		}
	}
	if a := st.Withheld; a != nil {
		want.Withheld, err = h.loadArtifact(ctx, b, a, now.Withheld, bundle.AsWithheld())
		switch {
		case err == nil:
		case !isPermanent(err):
			return now, nil, err
		default: // the status has its points
			problem = err
			want.Missing = append(want.Missing, missingOf(b, a, err))
		}
	}
	return want, problem, nil
}

// RemoveBundle removes a bundle.
func (h *Host) RemoveBundle(ctx context.Context, key Key) error {
	h.origins.removeOrigin(key)
	return h.library.RemoveBundle(ctx, key)
}

// loadArtifact reads an artifact and repeats the quick checks of the leader: the digest, the signature
// by the current keys of the spec, and the rules for a bundle of its kind. A bundle that was loaded
// from the same archive and verified by the same keys is reused.
func (h *Host) loadArtifact(ctx context.Context, b policy.AnyPolicyBundle, a *policy.PolicyArtifact, now *bundle.Bundle, opts ...bundle.Option) (*bundle.Bundle, error) {
	by := NewVerification(b.DesiredSpec().Verification).WithUsableKeys()
	from := origin{digest: a.Digest, keys: by.Fingerprint()}
	if now != nil && h.origins.hasOrigin(keyOf(b), a.Mode, from, now.Revision) && slices.Equal(now.Canary, slices.Sorted(slices.Values(a.Namespaces))) {
		return now, nil
	}
	archive, err := h.store.LoadArchive(ctx, b, a)
	if err != nil {
		return nil, err
	}
	if err := h.library.marks.beginLoad(contentOf(a), keyOf(b)); err != nil {
		return nil, err
	}
	found, err := readSigned(b, archive, by, append(append(opts, bundle.WithSince(a.Time.Time)), asCanary(a)...)...)
	if err != nil {
		h.library.marks.clearEntry(contentOf(a)) // the bundle was refused, and did not end the process
		return nil, explainUnloadable(b, a, archive, err)
	}
	if problems := found.CheckContract(); len(problems) > 0 {
		h.library.marks.clearEntry(contentOf(a))
		return nil, problems
	}
	from.content = found.Revision
	h.origins.recordOrigin(keyOf(b), a.Mode, from)
	return found, nil
}

func asCanary(a *policy.PolicyArtifact) []bundle.Option {
	if a.Mode != policy.PolicyModeCanary {
		return nil
	}
	return []bundle.Option{bundle.AsCanary(a.Namespaces...)}
}

// shadowStatus returns the counts of a shadow for the status.
func (h *Host) shadowStatus(key Key) *policy.PolicyShadow {
	t, ok := h.library.ShadowTally(key)
	if !ok {
		return nil
	}
	out := &policy.PolicyShadow{
		Since: metav1.NewTime(t.Since), Compared: int64(t.Compared), Stricter: int64(t.Stricter), Looser: int64(t.Looser),
		Changed: int64(t.Changed), Errors: int64(t.Errors), Skipped: int64(t.Skipped), Stopped: t.Stopped,
	}
	for _, g := range t.Groups[:min(len(t.Groups), mostDifferences)] {
		out.Differences = append(out.Differences, policy.PolicyDifference{
			Point: string(g.Point), Kind: string(g.Kind), Reason: g.Then, Candidate: g.Now, Count: int64(g.Count),
		})
	}
	return out
}

// mostDifferences is how many groups of differences a status has.
const mostDifferences = 10

func keyOf(b policy.AnyPolicyBundle) Key {
	return Key{Namespace: b.GetNamespace(), Name: b.GetName()}
}
