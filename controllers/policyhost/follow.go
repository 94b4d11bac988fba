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

// Follow makes a bundle stand as its status says, and returns what this process
// runs of it now. Where it cannot, the copy of it that decides already, or that is on
// disk, stands in its place; where there is none, the points that it takes part in are
// answered by their strict fallbacks. An error is worth trying again.
func (h *Host) Follow(ctx context.Context, b policy.AnyPolicyBundle) (policy.PolicyReplica, error) {
	key, st := keyOf(b), b.GetStatus()
	me := policy.PolicyReplica{Name: h.name}
	want, problem, err := h.want(ctx, b)
	if err == nil {
		err = h.put(ctx, key, want)
	}
	if isUnfit(err) { // it cannot decide beside the others
		problem = err
		err = h.put(ctx, key, unfit(b, h.library.Stages(key), want, problem))
	}
	now := h.library.Stages(key)
	var given engine.RolledBackError
	switch {
	case errors.As(err, &given):
		me.RolledBack = blamed(want, given)
		problem = fmt.Errorf("%w%s", err, h.refused(now.Withheld))
	case err != nil:
		problem = err
	}
	for _, a := range []*policy.PolicyArtifact{st.Active, st.Candidate, st.Withheld} {
		if a != nil {
			h.library.marks.decides(contentOf(a))
		}
	}
	if now.Enforced != nil {
		me.Revision = bundle.ShortRevision(now.Enforced.Revision)
	}
	if problem := h.engine.Snapshot().Problem(key.Namespace); problem != nil && err == nil && now.Enforced != nil {
		me.Revision, me.Problem = "", problem.Error() // it does not decide: the strict fallbacks do
	}
	switch {
	case now.Canary != nil:
		me.Candidate = bundle.ShortRevision(now.Canary.Revision)
	case now.Shadow != nil:
		me.Candidate = bundle.ShortRevision(now.Shadow.Revision)
		me.Shadow = h.compared(key)
	}
	if problem != nil {
		me.Problem = problem.Error()
	}
	if len(now.Missing) > 0 && problem != nil {
		me.Strict = whyStrict(problem)
	}
	if err != nil && !standing(err) {
		return me, err
	}
	return me, nil
}

func (h *Host) put(ctx context.Context, key Key, want Stages) error {
	if stands(h.library.Stages(key), want) {
		return nil
	}
	err := h.library.Put(ctx, key, want)
	h.reportChanged(h.library.Gone()) // bundles of namespaces that this one keeps out
	return err
}

// isUnfit says of an error that a bundle cannot decide beside the others.
func isUnfit(err error) bool {
	return errors.As(err, new(module.Problems)) || errors.As(err, new(engine.TooLargeError)) || errors.As(err, new(engine.UnfitError)) || errors.As(err, new(engine.SlowError))
}

// standing says of an error that it stays until something is changed.
func standing(err error) bool {
	return errors.As(err, new(engine.RolledBackError)) || isUnfit(err) || errors.As(err, new(bundlerevision.LostError)) || errors.As(err, new(bundle.SignatureError)) ||
		errors.As(err, new(unreadableError)) || endsProcess(err)
}

// blamed is the content of the revision that this replica does not run though the status
// names it.
func blamed(want Stages, given engine.RolledBackError) string {
	for _, b := range []*bundle.Bundle{want.Canary, want.Enforced} {
		if b != nil && isOf(bundle.Set{b}, given) {
			return b.Revision
		}
	}
	return ""
}

// contentOf is the content of an artifact, or the beginning of it in what an older
// manager has written.
func contentOf(a *policy.PolicyArtifact) string { return cmp.Or(a.Content, a.Revision) }

// refused tells which decisions have no answer of the policies while a bundle, which may be
// nil, is withheld.
func (h *Host) refused(withheld *bundle.Bundle) string {
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

// stands compares by content, and by where canaries hold.
func stands(now, want Stages) bool {
	return same(now.Enforced, want.Enforced) && same(now.Canary, want.Canary) && same(now.Shadow, want.Shadow) &&
		same(now.Withheld, want.Withheld) && slices.EqualFunc(now.Missing, want.Missing, engine.Missing.Equal)
}

// want reads what the status names. What stands already is taken as it is. The problem
// is why something else is to stand, which is worth trying again when something is
// changed.
func (h *Host) want(ctx context.Context, b policy.AnyPolicyBundle) (want Stages, problem, err error) {
	st, now := b.GetStatus(), h.library.Stages(keyOf(b))
	if st.ObservedGeneration == 0 {
		return now, nil, nil // it is not published yet: what the disk has is all that is known
	}
	decides := func(a *policy.PolicyArtifact, now *bundle.Bundle) (*bundle.Bundle, error) {
		found, failed := h.load(ctx, b, a, now)
		if failed == nil || !standing(failed) {
			return found, failed
		}
		problem = failed
		if found = h.instead(b, a, now, failed); found == nil {
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
		want.Shadow, err = h.load(ctx, b, a, now.Shadow)
		if err != nil && !standing(err) {
			return now, nil, err
		}
		if err != nil { // it decides nothing
			problem = err
		}
	}
	if a := st.Withheld; a != nil {
		want.Withheld, err = h.load(ctx, b, a, now.Withheld, bundle.AsWithheld())
		switch {
		case err == nil:
		case !standing(err):
			return now, nil, err
		default: // its points are known all the same
			problem = err
			want.Missing = append(want.Missing, missingOf(b, a, err))
		}
	}
	return want, problem, nil
}

// Remove takes a bundle out.
func (h *Host) Remove(ctx context.Context, key Key) error {
	h.origins.forget(key)
	return h.library.Remove(ctx, key)
}

// load reads an artifact and checks all that the leader has checked but for what
// takes long: the digest, the signature by the keys of the spec as it is now, and what
// a bundle of its kind may say. What was loaded from the same archive and verified by
// the same keys is taken as it is.
func (h *Host) load(ctx context.Context, b policy.AnyPolicyBundle, a *policy.PolicyArtifact, now *bundle.Bundle, opts ...bundle.Option) (*bundle.Bundle, error) {
	by := Verification(b.Wanted().Verification).Usable()
	from := origin{digest: a.Digest, keys: by.Fingerprint()}
	if now != nil && h.origins.has(keyOf(b), a.Mode, from, now.Revision) && slices.Equal(now.Canary, slices.Sorted(slices.Values(a.Namespaces))) {
		return now, nil
	}
	archive, err := h.store.Load(ctx, b, a)
	if err != nil {
		return nil, err
	}
	if err := h.library.marks.begin(contentOf(a), keyOf(b)); err != nil {
		return nil, err
	}
	found, err := readSigned(b, archive, by, append(append(opts, bundle.WithSince(a.Time.Time)), asCanary(a)...)...)
	if err != nil {
		h.library.marks.clear(contentOf(a)) // it was refused, and ended nothing
		return nil, unloadable(b, a, archive, err)
	}
	if problems := found.Check(); len(problems) > 0 {
		h.library.marks.clear(contentOf(a))
		return nil, problems
	}
	from.content = found.Revision
	h.origins.note(keyOf(b), a.Mode, from)
	return found, nil
}

func asCanary(a *policy.PolicyArtifact) []bundle.Option {
	if a.Mode != policy.PolicyModeCanary {
		return nil
	}
	return []bundle.Option{bundle.AsCanary(a.Namespaces...)}
}

// compared is how a shadow does, for the status.
func (h *Host) compared(key Key) *policy.PolicyShadow {
	t, ok := h.library.Tally(key)
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
