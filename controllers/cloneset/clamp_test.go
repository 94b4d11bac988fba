// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// Whatever a policy answers, no more is created or deleted than differs, and what
// is left keeps the partition as well as the differences do.
func TestNoAnswerScalesTooFar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		any := rapid.OneOf(rapid.IntRange(-3, 40), rapid.SampledFrom([]int{math.MinInt, math.MaxInt}))
		side := func(name string) budget.Side {
			s := budget.Side{
				PreDeleting: rapid.IntRange(0, 3).Draw(t, name+" preparing delete"), ToDelete: rapid.IntRange(0, 3).Draw(t, name+" to delete"),
				Unavailable: rapid.IntRange(0, 3).Draw(t, name+" unavailable"),
			}
			s.Total = s.PreDeleting + s.ToDelete + s.Unavailable + rapid.IntRange(0, 20).Draw(t, name+" others")
			return s
		}
		q := budget.Question{
			Replicas: rapid.IntRange(0, 30).Draw(t, "replicas"), MaxSurge: rapid.IntRange(0, 5).Draw(t, "maxSurge"),
			MaxUnavailable: rapid.IntRange(0, 5).Draw(t, "maxUnavailable"), Old: side("old"), New: side("new"),
		}
		q.Partition = rapid.IntRange(0, q.Replicas).Draw(t, "partition")
		d := budget.ComputeDiff(q)
		limit := rapid.SampledFrom([]int{0, 1, 5, math.MaxInt32}).Draw(t, "scaleStrategy.maxUnavailable")
		answer := rollout.ScaleOutput{Create: any.Draw(t, "create"), CreateCurrent: any.Draw(t, "current"), Delete: any.Draw(t, "delete"), DeleteCurrent: any.Draw(t, "of current")}
		out := clampScale(answer, d, limit)
		if out.Create < 0 || out.Create > d.Up || (out.Create > 0 && d.TotalUnavailable+out.Create > limit) {
			t.Fatalf("%d are created of %+v", out.Create, d)
		}
		if out.Delete < 0 || out.Delete > d.Down {
			t.Fatalf("%d are deleted of %+v", out.Delete, d)
		}
		if out.CreateCurrent < 0 || out.CreateCurrent > out.Create || out.Create-out.CreateCurrent > max(d.Up-d.UpOld, 0) {
			t.Fatalf("%d of %d are created at the current revision of %+v", out.CreateCurrent, out.Create, d)
		}
		if out.DeleteCurrent < 0 || out.DeleteCurrent > out.Delete || out.DeleteCurrent > d.DownOld {
			t.Fatalf("%d of %d are deleted of the current revision of %+v", out.DeleteCurrent, out.Delete, d)
		}
		// The answer of the built-in policy is not changed at all.
		builtin := rollout.ScaleOutput{
			Create:        max(min(d.Up, limit-d.TotalUnavailable), 0),
			Delete:        d.Down,
			DeleteCurrent: min(d.Down, d.DownOld),
		}
		builtin.CreateCurrent = min(builtin.Create, d.UpOld)
		if got := clampScale(builtin, d, limit); got.Create != builtin.Create || got.CreateCurrent != builtin.CreateCurrent || got.Delete != builtin.Delete || got.DeleteCurrent != builtin.DeleteCurrent {
			t.Fatalf("the built-in answer %+v becomes %+v of %+v", builtin, got, d)
		}
	})
}
