// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
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
func (p rankable) Facts(i int) decision.PodFacts  { return p[i].Facts }
func (p rankable) label(i int, key string) string { return p[i].Labels[key] }

// order ranks the candidates (CS-09), and lets rollout/rows change the order where a
// bundle defines it.
func (r *Round) order(ctx context.Context, f *Facts, plan decision.PlanOutput, in decision.PlanInput) ordered {
	pods := rankable(f.Pods)
	places := r.c.ranker.Rank(ctx, f.Subject, in.Workload, in.Strategy, pods)
	if places.Record != nil {
		r.Note(*places.Record)
	}
	var waiting []int
	for i, p := range f.Pods {
		if f.Candidate(p) {
			waiting = append(waiting, i)
		}
	}
	waiting = places.Arrange(waiting, plan.Scatter, pods.label)
	o := ordered{byName: make(map[string]*facts.Pod, len(waiting))}
	for _, i := range waiting {
		p := f.Pods[i]
		c := selection.Candidate{Name: p.Name, Available: f.Available(p), Groups: groupsOf(p)}
		if holds := places.Holds(i); len(holds) > 0 {
			c.Hold = &holds[0]
			r.until(holds[0])
		}
		o.byName[p.Name] = p
		o.candidates = append(o.candidates, c)
	}
	if r.c.engine.Defines(decision.RolloutRows().Name, f.Subject) {
		o.candidates = r.rows(ctx, f, in, o)
	}
	return o
}

// rows asks the opt-in point that sees all candidates. A candidate that it does not name
// is held; a name that is no candidate is ignored.
func (r *Round) rows(ctx context.Context, f *Facts, in decision.PlanInput, o ordered) []selection.Candidate {
	question := decision.RowsInput{Plan: in, Rows: make([]decision.PodFacts, len(o.candidates))}
	byName := make(map[string]selection.Candidate, len(o.candidates))
	for i, c := range o.candidates {
		question.Rows[i], byName[c.Name] = o.byName[c.Name].Facts, c
	}
	out, _ := Ask(ctx, r, f, decision.RolloutRows(), question)
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
					Rule: string(decision.RolloutRows().Name), Reason: "NotInOrder",
					Message: "The policy that orders all candidates left this pod out.",
				}
			}
			next = append(next, c)
		}
	}
	return next
}
