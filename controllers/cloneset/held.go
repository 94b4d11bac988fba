// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"

	"github.com/regatta-sh/regatta/controllers/workload/budget"
)

// allowedDiff returns the differences as far as the holds of the update let pods be created, and
// whether the whole update is held. If it is, only surge that replaces pods with a requested deletion
// is left. New pods then have the current revision, unless the hold says otherwise or they replace
// pods that the update has deleted before. If only some pods are held, the surge of the update is at
// most the number of the other pods, and a new pod that would be held has the current revision too.
// Policies are evaluated only if a new pod could be of the revision that is held.
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
	case held && hold.Movable > 0: // the surge is for pods that may be moved
		d.UpOld = max(d.UpOld, without.Up-taken)
	case held: // the surge replaces pods that are to be deleted
		d.UpOld = max(d.UpOld, d.Up-taken)
	}
	return d, false, nil
}

// withoutSurge returns the differences without the surge of an update, and the question that they answer.
func (s *scaler) withoutSurge() (budget.Question, budget.Diff) {
	none := 0
	q := s.k.budgetQuestion(s.f, s.f.Strategy.MaxSurge, true)
	q.UpdateSurge = &none
	return q, budget.ComputeDiff(q)
}

// forgetReplaced forgets the pods that an update has deleted once all their replacements exist.
func (s *scaler) forgetReplaced() {
	if len(s.r.ReplacedNames(s.f)) == 0 {
		return
	}
	if _, without := s.withoutSurge(); without.Up <= 0 {
		s.r.ForgetAllReplaced(s.f)
	}
}
