// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/shadow"
)

// updateShadows compares every bundle in shadow with the bundles that decide now: the effect of a
// shadow depends on the set of deciding bundles. The counts of a shadow continue unless the revision
// of the shadow, or of the bundle that it would replace, changes. The returned error is about the
// bundle of the key; errors of other bundles are logged.
func (l *library) updateShadows(ctx context.Context, about Key) error {
	if l.shadows == nil {
		return nil
	}
	// l.stands may be older than the engine's snapshot, since the engine rolls back by itself.
	live := l.engine.ActiveSnapshot()
	decides := map[Key]Stages{}
	for _, b := range live.UserBundles() {
		placeBundle(decides, b)
	}
	candidates := map[Key]*engine.Snapshot{}
	var failed error
	for key, s := range l.stands {
		if s.Shadow == nil {
			continue
		}
		candidate, err := l.engine.CompileBundles(ctx, append(allBut(decides, key), s.Shadow), l.candidates[key])
		switch {
		case err == nil:
		case key == about:
			failed = fmt.Errorf("putting bundle %s into shadow: %w", key, err)
			continue
		default:
			ctrl.LoggerFrom(ctx).Error(err, "A policy bundle is not in shadow any more", "bundle", key)
			continue
		}
		opts := []shadow.WatchOption{shadow.WithTopic(shadowSubject(s.Shadow, decides[key].Enforced)), shadow.WithLiveSnapshot(live)}
		if ns := key.Namespace; ns != "" {
			opts = append(opts, shadow.WithSubjectFilter(func(s decision.Subject) bool { return s.Namespace == ns }))
		}
		candidates[key] = candidate
		l.shadows.Watch(key.String(), candidate, opts...)
	}
	for key := range l.candidates {
		if candidates[key] == nil {
			l.shadows.StopWatching(key.String())
		}
	}
	l.live, l.candidates = live, candidates
	return failed
}

// refreshShadows calls updateShadows if the engine has another active snapshot, such as after a
// rollback.
func (l *library) refreshShadows(ctx context.Context, about Key) error {
	if l.live == l.engine.ActiveSnapshot() {
		return nil
	}
	return l.updateShadows(ctx, about)
}

// shadowSubject names the revisions that the counts of a shadow are about.
func shadowSubject(shadow, enforced *bundle.Bundle) string {
	if enforced == nil {
		return shadow.Revision
	}
	return shadow.Revision + " in place of " + enforced.Revision
}

// ShadowTally returns how the decisions of a bundle in shadow compare with the active ones.
func (l *library) ShadowTally(key Key) (compare.Tally, bool) {
	if l.shadows == nil {
		return compare.Tally{}, false
	}
	return l.shadows.ShadowTally(key.String())
}
