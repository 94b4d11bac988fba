// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"

	"github.com/regatta-sh/regatta/controllers/workload/budget"
)

// allowedDiff are the differences as far as the holds of the update let pods be created, and
// whether the whole of it is held. Then no surge of the update is left, only that which
// replaces pods that are asked to go, and new pods have the current revision unless the hold
// says otherwise, but for those that replace pods which the update took before. Where only some
// pods are held, surge is no more than the others, and where a new pod would be one of them it
// has the current revision too. Policies are asked only where a new pod could be of the revision
// that is held.
func (s *scaler) allowedDiff(ctx context.Context, d budget.Diff) (out budget.Diff, whole bool, err error) {
	if d.Up <= 0 {
		return d, false, nil
	}
	q, without := s.withoutSurge()
	surges := s.f.Difference.Update != 0 && without.Up < d.Up
	taken := min(len(s.r.ReplacedNames(s.f)), max(without.Up-without.UpOld, 0))
	revises := s.t.CurrentRevision() != s.t.UpdateRevision() && !s.f.IsRollback() && without.Up-without.UpOld > taken
	if !surges && !revises {
		return d, false, nil
	}
	missing, err := s.newPod(s.t.History.Current, "")
	if err != nil {
		return d, false, err
	}
	hold := s.r.UpdateHold(ctx, s.f, max(d.Up-d.UpOld, 1), surges, missing)
	held := s.t.CurrentRevision() != s.t.UpdateRevision() && !s.f.IsRollback() && hold.Missing[0]
	switch {
	case hold.Whole && (surges || held):
		if held {
			without.UpOld = without.Up - taken
		}
		return without, true, nil
	case !hold.Whole && surges && hold.Held > 0:
		q.UpdateSurge = &hold.Movable
		some := budget.ComputeDiff(q)
		d.Up, d.UpOld = some.Up, some.UpOld
	}
	switch {
	case held && hold.Movable > 0: // surge is of those that may be moved
		d.UpOld = max(d.UpOld, without.Up-taken)
	case held: // surge is of pods that go, and represents them
		d.UpOld = max(d.UpOld, d.Up-taken)
	}
	return d, false, nil
}

// withoutSurge are the differences without the surge of an update, and the question that they answer.
func (s *scaler) withoutSurge() (budget.Question, budget.Diff) {
	none := 0
	q := s.k.budgetQuestion(s.f, s.f.Strategy.MaxSurge, true)
	q.UpdateSurge = &none
	return q, budget.ComputeDiff(q)
}

// forgetReplaced forgets the pods that an update took once all that replace them are there.
func (s *scaler) forgetReplaced() {
	if len(s.r.ReplacedNames(s.f)) == 0 {
		return
	}
	if _, without := s.withoutSurge(); without.Up <= 0 {
		s.r.ForgetAllReplaced(s.f)
	}
}
