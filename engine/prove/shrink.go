// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"maps"
	"slices"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
)

// shrinkWorld sets what varies back to the base, one after the other, and leaves out parts of the base, while
// the input is a counterexample of the same kind. The answers must be confirmed; where those of the smaller
// input cannot be, the world stays as it is.
func (s *searcher) shrinkWorld(ctx context.Context, sp *space, w world, p *answers) (*Counterexample, error) {
	counts := *s.report
	defer func() { // what is tried here is no new world
		counts.Unstable = s.report.Unstable
		*s.report = counts
	}()
	w = slices.Clone(w)
	confirmed := s.newCounterexample(sp, w, p)
	for changed := true; changed; {
		changed = false
		for i := len(w) - 1; i >= 0; i-- {
			for c := range w[i] {
				smaller := slices.Clone(w)
				smaller[i] = c
				sp.clearInactive(smaller)
				next, err := s.decideBoth(ctx, sp.buildInput(smaller))
				if err != nil {
					return confirmed, nil // what was found counts, whatever ends the search
				}
				if next != nil && next.isLike(p) {
					w, p, changed = smaller, next, true
					break
				}
			}
		}
	}
	p = s.dropParts(ctx, p)
	if stable, err := s.confirmAnswers(ctx, p); err != nil || !stable {
		return confirmed, nil
	}
	return s.newCounterexample(sp, w, p), nil
}

// isLike reports whether the answers are a counterexample of the same kind, and no condition failed to
// evaluate that did not fail before.
func (p *answers) isLike(o *answers) bool {
	return p.kind == o.kind && (p.conditionError == nil || o.conditionError != nil)
}

// dropParts leaves out parts of the input with which nothing changes.
func (s *searcher) dropParts(ctx context.Context, p *answers) *answers {
	const maxTries = 400
	tries := 0
	var drop func(path []string, at map[string]any)
	drop = func(path []string, at map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(at)) {
			below := append(path[:len(path):len(path)], key)
			if tries++; tries > maxTries || ctx.Err() != nil {
				return
			}
			next, err := s.decideBoth(ctx, withoutPart(p.input, below))
			if err == nil && next != nil && next.isLike(p) && sameReasons(next, p) {
				p = next
				continue
			}
			if deeper, ok := at[key].(map[string]any); ok {
				drop(below, deeper)
			}
		}
	}
	if top, ok := p.input.(map[string]any); ok {
		drop(nil, top)
	}
	return p
}

// withoutPart copies a value without one of its parts.
func withoutPart(v any, path []string) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	object = maps.Clone(object)
	if len(path) == 1 {
		delete(object, path[0])
	} else {
		object[path[0]] = withoutPart(object[path[0]], path[1:])
	}
	return object
}

func sameReasons(a, b *answers) bool {
	return slices.Equal(reasonsOf(a.old), reasonsOf(b.old)) && slices.Equal(reasonsOf(a.new), reasonsOf(b.new)) &&
		a.old.Outcome == b.old.Outcome && a.new.Outcome == b.new.Outcome
}

// reasonsOf returns the rules and reasons of an answer, sorted, each once.
func reasonsOf(r decision.Record) []string {
	var out []string
	for _, h := range decision.VerdictOf(r).Reasons {
		out = append(out, h.Rule+"\x00"+h.Reason)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// newCounterexample makes the report of a counterexample.
func (s *searcher) newCounterexample(sp *space, w world, p *answers) *Counterexample {
	out := &Counterexample{Kind: p.kind, Point: s.point.Name, Input: p.input, New: sideOf(p.new), Shrunk: w.countChanges()}
	if p.conditionError != nil {
		out.ConditionError = p.conditionError.Error()
	}
	if s.Mode != NeverFails {
		old := sideOf(p.old)
		out.Old = &old
	}
	if p.diff != nil {
		out.Fields = p.diff.Fields
		out.Lost = s.findClauses(s.before, p.old, p.new)
		out.Added = s.findClauses(s.after, p.new, p.old)
	}
	return out
}

func sideOf(r decision.Record) compare.Side {
	return compare.Side{Revision: r.Revision, Outcome: r.Outcome, Verdict: decision.VerdictOf(r), Output: r.Output, Rules: r.Rules, Error: r.Error}
}

// findClauses returns the clauses that gave reasons which another answer lacks.
func (s *searcher) findClauses(of *side, r, other decision.Record) []Clause {
	there := reasonsOf(other)
	var out []Clause
	var clauses []engine.Clause
	source := of.engine.PolicySource(of.snapshot, s.subject)
	for _, h := range decision.VerdictOf(r).Reasons {
		c := Clause{Rule: h.Rule, Reason: h.Reason}
		if _, has := slices.BinarySearch(there, h.Rule+"\x00"+h.Reason); has || slices.ContainsFunc(out, func(o Clause) bool { return o.Rule == c.Rule && o.Reason == c.Reason }) {
			continue
		}
		if clauses == nil {
			clauses = source.PointClauses(s.point.Name)
		}
		if at := findClause(source, clauses, h, r, of); at != nil {
			c.Place, c.Bundle = at.Rule.Place, at.Rule.Bundle
		}
		out = append(out, c)
	}
	return out
}

// findClause returns the clause of a rule that is true for the input of a record, or otherwise its first one.
func findClause(source *engine.Source, clauses []engine.Clause, h decision.Hold, r decision.Record, of *side) *engine.Clause {
	var first *engine.Clause
	input, err := of.engine.Codec().Encode(r.Input)
	for i, c := range clauses {
		if c.Rule.ID != h.Rule {
			continue
		}
		if first == nil {
			first = &clauses[i]
		}
		if err != nil {
			continue
		}
		if got, err := source.SolveConditions(context.Background(), c, c.Conditions, input); err == nil && got != nil {
			return &clauses[i]
		}
	}
	return first
}
