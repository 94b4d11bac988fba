// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/rank"
)

// orderedCandidates are candidates in the order that policies gave them.
type orderedCandidates struct {
	candidates []selection.Candidate
	pods       map[types.NamespacedName]*facts.Pod
	facts      []points.PodFacts // of the candidates, by position
}

// rankable passes the pods of a round to the ranker.
type rankable struct {
	pods []*facts.Pod
	// awaiting are the facts, with their hashes, of pods whose nodes do not have all images
	// yet, by position. These facts are valid only in this round, and are not stored in the pods.
	awaiting map[int]awaiting
}

type awaiting struct {
	facts points.PodFacts
	hash  uint64
}

// rankablePods returns the pods of some facts, with the images that are pulled ahead on their nodes.
func (r *Round) rankablePods(f *Facts) rankable {
	out := rankable{pods: f.Pods}
	if r.pulls == nil {
		return out
	}
	out.awaiting = map[int]awaiting{}
	for i, p := range f.Pods {
		if p.Facts.Updated || p.Facts.Node == "" {
			continue
		}
		if pulls := r.pulls(p.Facts.Node); len(pulls) > 0 {
			a := awaiting{facts: p.Facts}
			a.facts.Pulls = pulls
			a.hash = rank.HashFacts(r.c.seed, &a.facts)
			out.awaiting[i] = a
		}
	}
	return out
}

func (p rankable) Len() int            { return len(p.pods) }
func (p rankable) PodUID(i int) string { return string(p.pods[i].UID) }

func (p rankable) FactsHash(i int) uint64 {
	if a, ok := p.awaiting[i]; ok {
		return a.hash
	}
	return p.pods[i].Hash
}

func (p rankable) PodFacts(i int) points.PodFacts {
	if a, ok := p.awaiting[i]; ok {
		return a.facts
	}
	return p.pods[i].Facts
}

func (p rankable) podLabel(i int, key string) string { return p.pods[i].Labels[key] }

// pullsAgain is the time after which a held pod whose node does not have all images yet is
// evaluated again. A change of a NodeImage starts no round.
const pullsAgain = 5 * time.Second

// orderCandidates ranks the candidates (CS-09). If a bundle defines rollout/rows, that may change
// the order.
func (r *Round) orderCandidates(ctx context.Context, f *Facts, plan points.PlanOutput, in points.PlanInput, candidate func(*facts.Pod) bool) orderedCandidates {
	pods := r.rankablePods(f)
	places := r.c.ranker.RankPods(ctx, f.Subject, in.Workload, in.Strategy, pods)
	for _, record := range places.Records {
		r.RecordDecision(record)
	}
	var waiting []int
	for i, p := range f.Pods {
		if candidate(p) {
			waiting = append(waiting, i)
		}
	}
	waiting = places.ArrangePods(waiting, plan.Scatter, pods.podLabel)
	if plan.Unavailable == "" { // otherwise the walk orders unavailable candidates
		f.underWayFirst(waiting)
	}
	o := orderedCandidates{pods: make(map[types.NamespacedName]*facts.Pod, len(waiting)), facts: make([]points.PodFacts, 0, len(waiting))}
	for _, i := range waiting {
		p := f.Pods[i]
		c := selection.Candidate{Pod: p.Key(), Available: f.IsSteady(p), Groups: groupsOf(p)}
		c.Hold = r.holdOfMissingFact(f.Subject, p)
		if holds := places.PodHolds(i); len(holds) > 0 {
			c.Hold = &holds[0]
			r.requeueForHold(holds[0])
			if _, ok := pods.awaiting[i]; ok {
				r.RequeueAfter(pullsAgain)
			}
		}
		o.facts = append(o.facts, pods.PodFacts(i))
		o.pods[c.Pod] = p
		o.candidates = append(o.candidates, c)
	}
	if r.c.Engine.IsPointDefined(points.RowsPoint().Name, f.Subject) {
		o.candidates = r.evaluateRows(ctx, f, in, o)
	}
	return o
}

// underWayFirst puts pods whose last update is not complete first: they were taken before, as
// were pods that prepare for their update. A pod that its node does not resize is ready in spite of that,
// and would wait indefinitely behind an available pod for which there is no room.
func (f *Facts) underWayFirst(waiting []int) {
	if _, ok := f.kind.(KindWithSharedPods); ok {
		return // the update is that of another workload
	}
	done := func(i int) (n int) {
		incrementIf(&n, f.Pods[i].InPlaceDone)
		return n
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return done(a) - done(b) })
}

// evaluateRows evaluates the opt-in point that receives all candidates. A candidate that the answer does not name
// is held; a name that is no candidate is ignored. A name without a namespace means each
// candidate with that name.
func (r *Round) evaluateRows(ctx context.Context, f *Facts, in points.PlanInput, o orderedCandidates) []selection.Candidate {
	// Pods with missing facts are held already, and the others are decided without them.
	question := points.RowsInput{Plan: in, Rows: slices.DeleteFunc(slices.Clone(o.facts), func(p points.PodFacts) bool { return len(p.MissingFacts) > 0 })}
	named := make(map[string][]int, 2*len(o.candidates)) // positions in candidates
	for i, c := range o.candidates {
		named[c.Pod.Name] = append(named[c.Pod.Name], i)
		named[c.Pod.String()] = append(named[c.Pod.String()], i)
	}
	out, rec := EvaluatePoint(ctx, r, f, points.RowsPoint(), question)
	left := decision.Hold{Rule: string(points.RowsPoint().Name), Reason: "NotInOrder", Message: "The policy that orders all candidates left this pod out."}
	if rec.Outcome != decision.Decided {
		left = decision.UndecidedHold("The policy that orders all candidates did not answer, so this pod is held until it does.", question)
	}
	next := make([]selection.Candidate, 0, len(o.candidates))
	placed := make([]bool, len(o.candidates))
	for _, name := range out.Order {
		for _, i := range named[name] {
			if !placed[i] {
				next, placed[i] = append(next, o.candidates[i]), true
			}
		}
	}
	for i, c := range o.candidates {
		if !placed[i] {
			if c.Hold == nil {
				c.Hold = &left
			}
			next = append(next, c)
		}
	}
	return next
}
