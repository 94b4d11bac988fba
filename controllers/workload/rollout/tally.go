// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/regatta-sh/regatta/controllers/explain"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// TallyPods implements explain.RoundWithProgress.
func (r *explanation) TallyPods() (map[explain.Verdict]int, []explain.ReasonCount) {
	return r.withAnswers().tallyPods()
}

// MeasureProgress implements explain.RoundWithProgress.
func (r *explanation) MeasureProgress() explain.Progress {
	f := r.f
	c, want := f.CountPods(), f.Replicas-f.Strategy.Partition
	return explain.Progress{
		At: f.Now, Revision: f.Templates.UpdateRevision(), Moved: len(r.res.Moved), Outdated: max(min(want, c.Total)-c.Updated, 0),
		Complete: f.isComplete(c),
	}
}

// isComplete reports whether all pods that are to be updated are, and all pods exist and are available.
func (f *Facts) isComplete(c points.Counts) bool {
	return c.Updated >= f.Replicas-f.Strategy.Partition && c.UpdatedAvail >= c.Updated && c.Total == f.Replicas
}

// tallyPods counts the pods by verdict, and counts those that are not up to
// date by reason, the most frequent first.
func (r *explanation) tallyPods() (map[explain.Verdict]int, []explain.ReasonCount) {
	verdicts := map[explain.Verdict]int{}
	at := map[string]int{}
	var out []explain.ReasonCount
	for _, a := range r.podAnswers() {
		verdicts[a.Verdict]++
		if a.Verdict == explain.UpToDate {
			continue
		}
		// A rule that holds groups of pods may have a reason for each group. A rule that
		// holds single pods has one reason for all.
		key := fmt.Sprint(a.Verdict, a.Reason, a.Rule)
		if i, ok := r.skips[keyOf(a.Subject)]; ok {
			key += fmt.Sprint(r.skipped[i].Hold.Where)
		}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, explain.ReasonCount{Verdict: a.Verdict, Reason: a.Reason, Rule: a.Rule, Message: a.Message, Pod: r.f.nameOf(keyOf(a.Subject))})
		}
		out[i].Pods++
	}
	slices.SortStableFunc(out, func(a, b explain.ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Message, b.Message))
	})
	return verdicts, out
}
