// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"time"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
)

// fetchIfDue fetches the source, unless it was fetched a short while ago.
func (p *Publisher) fetchIfDue(ctx context.Context, b policy.AnyPolicyBundle, s *seen) (*fetch.Fetched, error) {
	w := b.DesiredSpec()
	now := p.Clock()
	if s.fetched != nil && !s.at.IsZero() && now.Sub(s.at) < fetchInterval(w) {
		return s.fetched, nil
	}
	from := p.Platform
	if b.GetNamespace() != "" {
		from = p.Tenants
	}
	found, err := from.FetchBundle(ctx, newSource(p.Store.NamespaceOf(b), w), s.fetched)
	if err != nil {
		return nil, err
	}
	s.fetched, s.at = found, now
	return found, nil
}

// newSource returns the source of a bundle. ns is the namespace of the objects that the source names.
func newSource(ns string, w policy.Wanted) fetch.Source {
	switch {
	case w.ConfigMap != nil:
		return fetch.Source{ConfigMap: &fetch.ConfigMap{Namespace: ns, Name: w.ConfigMap.Name}}
	case w.OCI != nil:
		from := &fetch.OCI{Reference: w.OCI.Reference, Insecure: w.OCI.Insecure, CABundle: w.OCI.CABundle}
		for _, s := range w.OCI.PullSecrets {
			from.PullSecrets = append(from.PullSecrets, Key{Namespace: ns, Name: s.Name})
		}
		return fetch.Source{OCI: from}
	case w.HTTP != nil:
		from := &fetch.HTTP{URL: w.HTTP.URL, CABundle: w.HTTP.CABundle}
		if s := w.HTTP.Secret; s != nil {
			from.Secret = &Key{Namespace: ns, Name: s.Name}
		}
		return fetch.Source{HTTP: from}
	}
	return fetch.Source{Files: inlineFiles(w)}
}

// inlineFiles returns the files that stand in a spec.
func inlineFiles(w policy.Wanted) map[string]string {
	files := make(map[string]string, len(w.Files))
	for path, text := range w.Files {
		files[path] = string(text)
	}
	return files
}

// setFetchFailed reports that the source could not be fetched. The active revision stays.
func (p *Publisher) setFetchFailed(ctx context.Context, b policy.AnyPolicyBundle, err error) error {
	if ctx.Err() != nil {
		return err
	}
	r := &refusal{stage: policy.PolicyBundleFetched, reason: policy.PolicyBundleFetchFailedReason, errors: []string{err.Error()}}
	if fetch.IsPermanent(err) {
		r.reason = policy.PolicyBundleSourceInvalidReason
	}
	st := b.GetStatus()
	if c := findCondition(b, policy.PolicyBundleReady); st.ObservedGeneration == b.GetGeneration() && c != nil && c.Reason == policy.PolicyBundleRolledBackReason {
		return nil // the rollback is more important
	}
	setRefused(b, r)
	st.ObservedGeneration = b.GetGeneration()
	return nil
}

// requeueAfter returns when to reconcile a bundle that does not change: its source may have new
// contents, a bundle that it conflicts with may be gone, and a new leader may have to write a status
// that the previous one did not write.
func requeueAfter(w policy.Wanted) time.Duration {
	if d := fetchInterval(w); d > 0 {
		return min(d, lookAgain)
	}
	return lookAgain
}

const lookAgain = 30 * time.Second
