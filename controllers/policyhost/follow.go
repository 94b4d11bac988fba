// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/module"
)

// Follow makes a bundle stand as its status says, and returns what this process
// runs of it now. An error is worth trying again.
func (h *Host) Follow(ctx context.Context, b policy.AnyPolicyBundle) (policy.PolicyReplica, error) {
	key, st := keyOf(b), b.GetStatus()
	me := policy.PolicyReplica{Name: h.name}
	want, err := h.want(ctx, b)
	if err == nil && !stands(h.library.Stages(key), want) {
		err = h.library.Put(ctx, key, want)
	}
	var given engine.RolledBackError
	switch {
	case errors.As(err, &given):
		me.RolledBack = blamed(st, h.library.Stages(key))
		me.Problem = err.Error()
	case err != nil:
		me.Problem = err.Error()
	}
	now := h.library.Stages(key)
	if now.Enforced != nil {
		me.Revision = now.Enforced.Revision
	}
	if problem := h.engine.Snapshot().Problem(key.Namespace); problem != nil && err == nil && now.Enforced != nil {
		me.Revision, me.Problem = "", problem.Error() // it does not decide: the strict fallbacks do
	}
	switch {
	case now.Canary != nil:
		me.Candidate = now.Canary.Revision
	case now.Shadow != nil:
		me.Candidate = now.Shadow.Revision
		me.Shadow = h.compared(key)
	}
	if err != nil && !standing(err) {
		return me, err
	}
	return me, nil
}

// standing says of an error that it stays until something is changed.
func standing(err error) bool {
	return errors.As(err, new(engine.RolledBackError)) || errors.As(err, new(module.Problems)) ||
		errors.As(err, new(engine.TooLargeError)) || errors.As(err, new(bundlerevision.LostError)) || errors.As(err, new(bundle.SignatureError))
}

// blamed is the revision that this replica does not run though the status names
// it: that which it was told to run last.
func blamed(st *policy.PolicyBundleStatus, now Stages) string {
	if c := st.Candidate; c != nil && c.Mode == policy.PolicyModeCanary && (now.Canary == nil || now.Canary.Revision != c.Revision) {
		return c.Revision
	}
	if st.Active != nil {
		return st.Active.Revision
	}
	return ""
}

// stands compares by content, and by where canaries hold.
func stands(now, want Stages) bool {
	return same(now.Enforced, want.Enforced) && same(now.Canary, want.Canary) && same(now.Shadow, want.Shadow)
}

// want reads what the status names. What stands already is taken as it is.
func (h *Host) want(ctx context.Context, b policy.AnyPolicyBundle) (Stages, error) {
	st, now := b.GetStatus(), h.library.Stages(keyOf(b))
	if st.ObservedGeneration == 0 {
		return now, nil // it is not published yet: what the disk has is all that is known
	}
	var want Stages
	var err error
	if a := st.Active; a != nil {
		if want.Enforced, err = h.load(ctx, b, a, now.Enforced); err != nil {
			return now, err
		}
	}
	if a := st.Candidate; a != nil {
		if a.Mode == policy.PolicyModeCanary {
			want.Canary, err = h.load(ctx, b, a, now.Canary)
		} else {
			want.Shadow, err = h.load(ctx, b, a, now.Shadow)
		}
	}
	if err != nil {
		return now, err
	}
	return want, nil
}

// Remove takes a bundle out.
func (h *Host) Remove(ctx context.Context, key Key) error { return h.library.Remove(ctx, key) }

// load reads an artifact and checks all that the leader has checked but for what
// takes long: the digest, the signature, and what a bundle of its kind may say.
func (h *Host) load(ctx context.Context, b policy.AnyPolicyBundle, a *policy.PolicyArtifact, now *bundle.Bundle) (*bundle.Bundle, error) {
	var opts []bundle.Option
	if a.Mode == policy.PolicyModeCanary {
		opts = append(opts, bundle.AsCanary(a.Namespaces...))
	}
	if now != nil && now.Revision == a.Revision && slices.Equal(now.Canary, slices.Sorted(slices.Values(a.Namespaces))) {
		return now, nil
	}
	archive, err := h.store.Load(ctx, b, a)
	if err != nil {
		return nil, err
	}
	by := Verification(b.Wanted().Verification)
	if a.Generation != b.GetGeneration() {
		by = nil // it was verified by the keys of its time, and the digest says that it is that one
	}
	found, err := Read(b, archive, by, opts...)
	if err != nil {
		return nil, err
	}
	if problems := found.Check(); len(problems) > 0 {
		return nil, problems
	}
	return found, nil
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
