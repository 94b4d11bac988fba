// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"

	"github.com/regatta-sh/regatta/controllers/workload/budget"
)

// allowed are the differences as far as the holds of the update let pods be created, and
// whether the whole of it is held. Then no surge of the update is left, only that which
// replaces pods that are asked to go, and new pods have the current revision unless the hold
// says otherwise, but for those that replace pods which the update took before. Where only some
// pods are held, surge is no more than the others. Policies are asked only where a new pod
// could be of the revision that is held.
func (s *scaler) allowed(ctx context.Context, d budget.Diff) (out budget.Diff, whole bool) {
	if d.Up <= 0 {
		return d, false
	}
	none := 0
	q := s.k.question(s.f, s.f.Strategy.MaxSurge, true)
	q.UpdateSurge = &none
	without := budget.Compute(q)
	surges := s.f.Difference.Update != 0 && without.Up < d.Up
	taken := min(len(s.r.Replaced(s.f)), max(without.Up-without.UpOld, 0))
	revises := s.t.Current() != s.t.Update() && !s.f.Backwards() && without.Up-without.UpOld > taken
	if !surges && !revises {
		return d, false
	}
	hold := s.r.UpdateHold(ctx, s.f, max(d.Up-d.UpOld, 1), surges)
	switch {
	case hold.Whole && (surges || hold.Current):
		if hold.Current && s.t.Current() != s.t.Update() {
			without.UpOld = without.Up - taken
		}
		return without, true
	case hold.Whole || !surges || hold.Held == 0:
		return d, false
	}
	q.UpdateSurge = &hold.Movable
	some := budget.Compute(q)
	d.Up, d.UpOld = some.Up, some.UpOld
	return d, false
}
