// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"

	"pgregory.net/rapid"

	_ "github.com/regatta-sh/regatta/test/proptest"
)

// side makes a Side of so many pods that are available and not asked to go.
func side(available int) Side { return Side{Total: available} }

func TestCompute(t *testing.T) {
	base := Question{Replicas: 10, MaxUnavailable: 2}
	with := func(edit func(*Question)) Question {
		q := base
		edit(&q)
		return q
	}
	tests := map[string]struct {
		q    Question
		want Diff
	}{
		"nothing is to do when all pods are new and there": {
			with(func(q *Question) { q.New = side(10) }), Diff{},
		},
		"a new workload creates all its pods, none of the old revision": {
			with(func(*Question) {}), Diff{Up: 10},
		},
		"a workload of no replicas deletes all, the old ones first": {
			with(func(q *Question) { q.Replicas = 0; q.Old, q.New = side(3), side(4) }),
			Diff{Down: 7, DownOld: 3, ReadyLimit: 9},
		},
		"all old pods are to be updated, as many at once as may be unavailable": {
			with(func(q *Question) { q.Old = side(10) }), Diff{Update: 10, MaxUnavailable: 2},
		},
		"the partition keeps old pods": {
			with(func(q *Question) { q.Old, q.Partition = side(10), 7 }), Diff{Update: 3, MaxUnavailable: 2},
		},
		"at the partition nothing is to be updated": {
			with(func(q *Question) { q.Old, q.New, q.Partition = side(7), side(3), 7 }), Diff{},
		},
		"beyond the partition nothing goes back without the gate": {
			with(func(q *Question) { q.Old, q.New, q.Partition = side(3), side(7), 7 }), Diff{},
		},
		"beyond the partition pods go back with the gate": {
			with(func(q *Question) { q.Old, q.New, q.Partition, q.Rollback = side(3), side(7), 7, true }),
			Diff{Update: -4, MaxUnavailable: 2},
		},
		"too many pods of both revisions are scaled in, not moved": {
			with(func(q *Question) { q.Old, q.New, q.Partition, q.Rollback = side(7), side(6), 5, true }),
			Diff{Down: 3, DownOld: 2, ReadyLimit: 5},
		},
		"too few pods of both revisions are created, not moved": {
			with(func(q *Question) { q.Old, q.New, q.Partition, q.Rollback = side(2), side(4), 5, true }),
			Diff{Up: 4, UpOld: 3},
		},
		"missing pods of the old revision are created there": {
			with(func(q *Question) { q.Old, q.New, q.Partition = side(4), side(3), 5 }),
			Diff{Up: 3, UpOld: 1},
		},
		"while the two differences disagree the smaller wins: scaling first": {
			with(func(q *Question) { q.Old = side(6) }), Diff{Up: 4, Update: 6, MaxUnavailable: -2},
		},
		"pods too many of both revisions are taken from the old one down to its partition": {
			with(func(q *Question) { q.Old, q.New, q.Partition = side(7), side(6), 5 }),
			Diff{Down: 3, DownOld: 2, ReadyLimit: 5},
		},
		"pods to delete are not too many": {
			with(func(q *Question) { q.New = Side{Total: 12, ToDelete: 2} }), Diff{ReadyLimit: 4},
		},
		"without anything to delete there is no limit for deletions": {
			with(func(q *Question) { q.New = Side{Total: 10, Unavailable: 1} }), Diff{TotalUnavailable: 1},
		},
		"unavailable pods use up the deletions": {
			with(func(q *Question) { q.New = Side{Total: 10, ToDelete: 3, Unavailable: 1} }),
			Diff{ReadyLimit: 1, TotalUnavailable: 1},
		},
		"pods preparing their deletion use them up too": {
			with(func(q *Question) { q.New = Side{Total: 10, ToDelete: 3, PreDeleting: 2} }),
			Diff{ReadyLimit: 0, TotalUnavailable: 2, Update: 0},
		},
		"pods preparing their deletion count as there": {
			with(func(q *Question) { q.New = Side{Total: 10, PreDeleting: 2} }), Diff{TotalUnavailable: 2},
		},
		"unless they are excluded": {
			with(func(q *Question) { q.New, q.ExcludePreparingDelete = Side{Total: 10, PreDeleting: 2}, true }),
			Diff{Up: 2, TotalUnavailable: 2},
		},
		"surge creates pods for an update": {
			with(func(q *Question) { q.Old, q.MaxSurge, q.MaxUnavailable = side(10), 3, 0 }),
			Diff{Up: 3, UseSurge: 3, Update: 10},
		},
		"surge makes room to update": {
			with(func(q *Question) { q.Old, q.New, q.MaxSurge, q.MaxUnavailable = side(10), side(3), 3, 0 }),
			Diff{UseSurge: 3, Update: 7, MaxUnavailable: 3},
		},
		"surge never creates more than are left to update": {
			with(func(q *Question) { q.Old, q.New, q.MaxSurge = side(1), side(9), 5 }),
			Diff{Up: 1, UseSurge: 1, Update: 1, MaxUnavailable: 2},
		},
		"surge goes when the update is done": {
			with(func(q *Question) { q.Old, q.New, q.MaxSurge = side(2), side(10), 5 }),
			Diff{Down: 2, DownOld: 2, ReadyLimit: 4},
		},
		"surge is for pods to delete only beyond what may be unavailable": {
			with(func(q *Question) { q.New, q.MaxSurge = Side{Total: 10, ToDelete: 2}, 5 }), Diff{ReadyLimit: 2},
		},
		"surge replaces pods to delete ahead": {
			with(func(q *Question) { q.New, q.MaxSurge, q.MaxUnavailable = Side{Total: 10, ToDelete: 3}, 2, 0 }),
			Diff{Up: 2, UseSurge: 2, ReadyLimit: 0},
		},
		"old pods to delete are replaced by old ones": {
			with(func(q *Question) {
				q.Old, q.New, q.Partition, q.MaxSurge, q.MaxUnavailable = Side{Total: 5, ToDelete: 2}, side(5), 5, 2, 0
			}),
			Diff{Up: 2, UpOld: 2, UseSurge: 2},
		},
		"of a delete and an update that both want surge the larger gets it": {
			with(func(q *Question) { q.Old, q.MaxSurge, q.MaxUnavailable = Side{Total: 10, ToDelete: 1}, 4, 0 }),
			Diff{Up: 4, UseSurge: 4, Update: 10},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Surplus = max(tc.q.Old.ActivePods()-tc.q.Partition, 0) // in any case
			tc.want.Missing = max(tc.q.Replicas-tc.q.Partition-tc.q.New.ActivePods(), 0)
			if got := ComputeDiff(tc.q); got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func drawSide(t *rapid.T, name string) Side {
	s := Side{
		PreDeleting: rapid.IntRange(0, 4).Draw(t, name+" preparing delete"),
		ToDelete:    rapid.IntRange(0, 6).Draw(t, name+" to delete"),
		Unavailable: rapid.IntRange(0, 6).Draw(t, name+" unavailable"),
	}
	s.Total = s.PreDeleting + s.ToDelete + s.Unavailable + rapid.IntRange(0, 30).Draw(t, name+" available")
	return s
}

func drawQuestion(t *rapid.T) Question {
	q := Question{
		Replicas: rapid.IntRange(0, 40).Draw(t, "replicas"),
		MaxSurge: rapid.IntRange(0, 8).Draw(t, "maxSurge"), MaxUnavailable: rapid.IntRange(0, 12).Draw(t, "maxUnavailable"),
		Rollback: rapid.Bool().Draw(t, "rollback"), ExcludePreparingDelete: rapid.Bool().Draw(t, "exclude preparing delete"),
		Old: drawSide(t, "old"), New: drawSide(t, "new"),
	}
	q.Partition = rapid.IntRange(0, q.Replicas).Draw(t, "partition")
	return q
}

func TestTheDifferencesKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		d := ComputeDiff(q)
		total, preparing := q.Old.Total+q.New.Total, q.Old.PreDeleting+q.New.PreDeleting
		have := total
		if q.ExcludePreparingDelete {
			have -= preparing
		}
		promise := func(kept bool, what string) {
			t.Helper()
			if !kept {
				t.Fatalf("%s: %+v of %+v", what, d, q)
			}
		}
		promise(d.Up >= 0 && d.UpOld >= 0 && d.Down >= 0 && d.DownOld >= 0 && d.ReadyLimit >= 0, "a number is negative")
		promise(d.Up == 0 || d.Down == 0, "pods are both missing and too many")
		promise(d.UseSurge <= q.MaxSurge, "more surge is used than there is")
		promise(d.Up == 0 || have+d.Up <= q.Replicas+q.MaxSurge, "more pods are created than replicas and surge")
		promise(d.Down <= max(have-q.Old.ToDelete-q.New.ToDelete-q.Replicas, 0), "the replicas are not kept")
		promise(d.ReadyLimit == 0 || total-d.TotalUnavailable-d.ReadyLimit >= q.Replicas-q.MaxUnavailable, "deletions leave too few")
		promise(q.Rollback || d.Update >= 0, "pods go back without the gate")
		switch {
		case d.Update > 0:
			promise(q.Old.ActivePods()-d.Update >= q.Partition, "fewer old pods are kept than the partition")
			promise(q.New.ActivePods()+d.Update <= q.Replicas-q.Partition, "more pods are updated than replicas - partition")
		case d.Update < 0:
			promise(q.Old.ActivePods()-d.Update <= q.Partition, "more pods go back than the partition keeps")
			promise(q.New.ActivePods()+d.Update >= q.Replicas-q.Partition, "more pods go back than are too many")
		}
		// Creation keeps the partition too: what is created at the update
		// revision, beside pods that are to go, is within replicas - partition.
		if created := d.Up - min(d.Up, d.UpOld); created > 0 {
			staying := q.New.ActivePods() - q.New.ToDelete
			promise(staying+created <= max(q.Replicas-q.Partition, staying)+q.Old.ToDelete+preparing+d.UseSurge, "creation goes beyond the partition")
		}
	})
}
