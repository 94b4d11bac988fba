// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"

	"github.com/regatta-sh/regatta/engine/bundle"
)

// lineage records the history of the active bundles.
type lineage struct {
	// count is how often a set became active; since has, for each content, the count when it became
	// active.
	count uint64
	since map[content]uint64
	// before has, for each bundle of the platform by name, its previous revision. Tenants' bundles are too
	// many to keep twice: after a rollback they are withheld until the host, which follows the cluster,
	// replaces them.
	before map[string]*bundle.Bundle
}

// recordSet notes that a set replaces another one.
func (l *lineage) recordSet(old, now bundle.Set) {
	l.count++
	since, before := map[content]uint64{}, map[string]*bundle.Bundle{}
	for _, b := range now {
		c := contentOf(b)
		if since[c] = l.since[c]; since[c] == 0 {
			since[c] = l.count
		}
	}
	for _, b := range now.OwnedBy("").WithoutWithheld() {
		was, earlier := findStable(old, b.Name), l.before[b.Name]
		switch {
		case was == nil || was.Withheld:
		case was.ID() == b.ID():
			before[b.Name] = earlier
		case earlier != nil && earlier.ID() == b.ID(): // a revision that was rolled back is no predecessor
		default:
			before[b.Name] = was
		}
	}
	l.since, l.before = since, before
}

// oldestFirst sorts bundles by when they were accepted. If that is not known for all, it sorts by when
// they became active in this process; bundles that became active together keep their order.
func (e *Engine) oldestFirst(set bundle.Set) bundle.Set {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := !slices.ContainsFunc(set, func(b *bundle.Bundle) bool { return b.Since.IsZero() })
	return slices.SortedStableFunc(slices.Values(set), func(a, b *bundle.Bundle) int {
		active := cmp.Compare(e.lineage.since[contentOf(a)], e.lineage.since[contentOf(b)])
		if known {
			return cmp.Or(a.Since.Compare(b.Since), active)
		}
		return active
	})
}
