// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// ordered are candidates in the order that policies gave them.
type ordered struct {
	candidates []selection.Candidate
	byName     map[string]*facts.Pod
}

// rankable shows the ranker the pods of a round.
type rankable []*facts.Pod

func (p rankable) Len() int                       { return len(p) }
func (p rankable) UID(i int) string               { return string(p[i].UID) }
func (p rankable) Hash(i int) uint64              { return p[i].Hash }
func (p rankable) Facts(i int) points.PodFacts    { return p[i].Facts }
func (p rankable) label(i int, key string) string { return p[i].Labels[key] }

// order ranks the candidates (CS-09), and lets rollout/rows change the order where a
// bundle defines it.
func (r *Round) order(ctx context.Context, f *Facts, plan points.PlanOutput, in points.PlanInput, candidate func(*facts.Pod) bool) ordered {
	pods := rankable(f.Pods)
	places := r.c.ranker.Rank(ctx, f.Subject, in.Workload, in.Strategy, pods)
	if places.Record != nil {
		r.Note(*places.Record)
	}
	var waiting []int
	for i, p := range f.Pods {
		if candidate(p) {
			waiting = append(waiting, i)
		}
	}
	waiting = places.Arrange(waiting, plan.Scatter, pods.label)
	if plan.Unavailable == "" { // else the walk lets unavailable ones go
		f.underWayFirst(waiting)
	}
	o := ordered{byName: make(map[string]*facts.Pod, len(waiting))}
	for _, i := range waiting {
		p := f.Pods[i]
		c := selection.Candidate{Name: p.Name, Available: f.Steady(p), Groups: groupsOf(p)}
		if holds := places.Holds(i); len(holds) > 0 {
			c.Hold = &holds[0]
			r.until(holds[0])
		}
		o.byName[p.Name] = p
		o.candidates = append(o.candidates, c)
	}
	if r.c.engine.Defines(points.RowsPoint().Name, f.Subject) {
		o.candidates = r.rows(ctx, f, in, o)
	}
	return o
}

// underWayFirst has pods go first whose last update is not complete: they were taken, as
// those that prepare for theirs. One that its node does not resize is ready all the same,
// and would wait for ever behind an available pod for which there is no room.
func (f *Facts) underWayFirst(waiting []int) {
	if _, ok := f.kind.(Guest); ok {
		return // it is the update of another that is under way
	}
	done := func(i int) (n int) {
		add(&n, f.Pods[i].InPlaceDone)
		return n
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return done(a) - done(b) })
}

// rows asks the opt-in point that sees all candidates. A candidate that it does not name
// is held; a name that is no candidate is ignored.
func (r *Round) rows(ctx context.Context, f *Facts, in points.PlanInput, o ordered) []selection.Candidate {
	question := points.RowsInput{Plan: in, Rows: make([]points.PodFacts, len(o.candidates))}
	byName := make(map[string]selection.Candidate, len(o.candidates))
	for i, c := range o.candidates {
		question.Rows[i], byName[c.Name] = o.byName[c.Name].Facts, c
	}
	out, _ := Ask(ctx, r, f, points.RowsPoint(), question)
	next := make([]selection.Candidate, 0, len(o.candidates))
	for _, name := range out.Order {
		if c, ok := byName[name]; ok {
			next = append(next, c)
			delete(byName, name)
		}
	}
	for _, c := range o.candidates {
		if _, left := byName[c.Name]; left {
			if c.Hold == nil {
				c.Hold = &decision.Hold{
					Rule: string(points.RowsPoint().Name), Reason: "NotInOrder",
					Message: "The policy that orders all candidates left this pod out.",
				}
			}
			next = append(next, c)
		}
	}
	return next
}
