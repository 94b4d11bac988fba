package cloneset

import (
	"cmp"
	"context"
	"slices"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// ordered are candidates in the order that policies gave them.
type ordered struct {
	candidates []selection.Candidate
	byName     map[string]*facts.Pod
}

// order ranks the candidates (CS-09).
func (r *Reconciler) order(ctx context.Context, w *world, cands []*facts.Pod, plan decision.PlanOutput) ordered {
	in := decision.RankInput{Workload: w.workload(), Strategy: w.strategy, Pods: make([]decision.PodFacts, len(cands))}
	index := make([]int, len(cands))
	for i, p := range cands {
		in.Pods[i], index[i] = p.Facts, i
	}
	out, _ := engine.Decide(ctx, r.engine, decision.RolloutRank(), w.subject(), in)
	desc := map[int]bool{}
	for _, i := range out.Descending {
		desc[i] = true
	}
	slices.SortStableFunc(index, func(a, b int) int {
		for i := range out.Keys[a] {
			if c := cmp.Compare(out.Keys[a][i], out.Keys[b][i]); c != 0 {
				if desc[i] {
					return -c
				}
				return c
			}
		}
		return 0
	})
	slices.SortStableFunc(index, func(a, b int) int { return slices.Compare(out.Lead[a], out.Lead[b]) })
	holds := map[string]*decision.Hold{}
	for i := range out.Holds {
		if h := &out.Holds[i]; holds[h.Pod] == nil {
			holds[h.Pod] = h
		}
	}
	o := ordered{byName: map[string]*facts.Pod{}}
	for _, i := range index {
		p := cands[i]
		o.byName[p.Name] = p
		o.candidates = append(o.candidates, selection.Candidate{
			Name: p.Name, Available: p.Available(w.minReady, w.now), Groups: groupsOf(p), Hold: holds[p.Name],
		})
	}
	return o
}
