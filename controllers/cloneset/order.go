package cloneset

import (
	"context"

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

// rankable shows the ranker the pods of a round.
type rankable []*facts.Pod

func (p rankable) Len() int                       { return len(p) }
func (p rankable) UID(i int) string               { return string(p[i].UID) }
func (p rankable) Hash(i int) uint64              { return p[i].Hash }
func (p rankable) Facts(i int) decision.PodFacts  { return p[i].Facts }
func (p rankable) label(i int, key string) string { return p[i].Labels[key] }

// order ranks the candidates (CS-09), and lets rollout/rows change the order
// where a bundle defines it.
func (r *Reconciler) order(ctx context.Context, w *world, plan decision.PlanOutput, in decision.PlanInput) ordered {
	pods := rankable(w.pods)
	places := r.ranker.Rank(ctx, w.subject(), in.Workload, in.Strategy, pods)
	if places.Record != nil {
		w.decided(*places.Record)
	}
	var waiting []int
	for i, p := range w.pods {
		if w.candidate(p) {
			waiting = append(waiting, i)
		}
	}
	waiting = places.Arrange(waiting, plan.Scatter, pods.label)
	o := ordered{byName: make(map[string]*facts.Pod, len(waiting))}
	for _, i := range waiting {
		p := w.pods[i]
		c := selection.Candidate{Name: p.Name, Available: p.Available(w.minReady, w.now), Groups: groupsOf(p)}
		if holds := places.Holds(i); len(holds) > 0 {
			c.Hold = &holds[0]
			w.until(holds[0])
		}
		o.byName[p.Name] = p
		o.candidates = append(o.candidates, c)
	}
	if r.engine.Defines(decision.RolloutRows().Name, w.subject()) {
		r.rows(ctx, w, in, &o)
	}
	return o
}

// rows asks the opt-in point that sees all candidates. A candidate that it does
// not name is held; a name that is no candidate is nothing.
func (r *Reconciler) rows(ctx context.Context, w *world, in decision.PlanInput, o *ordered) {
	question := decision.RowsInput{Plan: in, Rows: make([]decision.PodFacts, len(o.candidates))}
	byName := make(map[string]selection.Candidate, len(o.candidates))
	for i, c := range o.candidates {
		question.Rows[i], byName[c.Name] = o.byName[c.Name].Facts, c
	}
	out, rec := engine.Decide(ctx, r.engine, decision.RolloutRows(), w.subject(), question)
	w.decided(rec)
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
	o.candidates = next
}
