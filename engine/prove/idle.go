// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/module"
)

// IdleRule is a rule that no input made true that was tried. Others may.
type IdleRule struct {
	// Name is the name of the rule, and File and Row to EndRow where it is.
	Name, File  string
	Row, EndRow int
	// Condition is the first one that was true of no input together with those before it, at ConditionRow and
	// ConditionCol.
	Condition                  string
	ConditionRow, ConditionCol int
	// Worlds is how many inputs were tried.
	Worlds int
}

// Idle is the result of FindIdleRules.
type Idle struct {
	Rules []IdleRule
	// Stopped is why the search ended before all inputs were tried; empty if it did not.
	Stopped string
}

// maxWatched bounds the rules that FindIdleRules watches at a time.
const maxWatched = 500

// errAllTrue ends a search: there is no rule that was not true.
var errAllTrue = errors.New("all rules were true")

// FindIdleRules searches for inputs that make each rule of bundles true, and returns those for which it found
// none. Mode, Old, and Unless of the question are not used. Functions and rules with an else are not searched for, and
// no rule of which the evaluation did not end in time. Its errors are those of FindCounterexample.
func FindIdleRules(ctx context.Context, q Question) (*Idle, error) {
	if q.Limits.Worlds < 1 || q.Limits.Worlds > MaxWorlds {
		return nil, fmt.Errorf("reading the limits: worlds is %d, want 1 to %d", q.Limits.Worlds, MaxWorlds)
	}
	q.Mode = NeverFails
	before, after, stop, err := newSides(ctx, q)
	defer stop()
	if err != nil {
		return nil, fmt.Errorf("compiling: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, q.Limits.Timeout)
	defer cancel()
	all, err := newSearchers(q, before, after, nil)
	if err != nil {
		return nil, err
	}
	out := &Idle{}
	watched := &watch{rules: map[string]*watchedRule{}}
	for _, s := range all {
		s.report = &PointReport{Point: s.point.Name}
		sight := watched.newSight(s)
		s.visit = sight.visitWorld
		switch _, err := s.searchPoint(limited); {
		case errors.Is(err, errAllTrue), err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			out.Stopped = fmt.Sprintf("the time of %s was over", q.Limits.Timeout)
		case errors.Is(err, ErrLate):
			out.Stopped = err.Error()
		default:
			return nil, err
		}
		if out.Stopped != "" {
			break
		}
	}
	out.Rules = watched.listIdle()
	return out, nil
}

// watch are the rules of bundles, with what was true of them.
type watch struct {
	rules map[string]*watchedRule
}

// watchedRule is a rule, and how many of its first conditions were true together.
type watchedRule struct {
	clause engine.Clause
	place  *ast.Location
	// reached is how many conditions from the first one on were true of one input.
	reached int
	worlds  int
	// failed is true if an evaluation failed, so that nothing is known.
	failed bool
}

func (w *watchedRule) isDone() bool { return w.failed || w.reached >= len(w.clause.Conditions) }

// sight are the watched rules of one point.
type sight struct {
	*searcher
	source *engine.Source
	rules  []*watchedRule
	// prepared are first conditions of a rule, by their number.
	prepared map[*watchedRule]map[int]*engine.PreparedConditions
}

// newSight watches the rules of bundles at a point.
func (w *watch) newSight(s *searcher) *sight {
	out := &sight{searcher: s, source: s.after.engine.PolicySource(s.after.snapshot, s.subject), prepared: map[*watchedRule]map[int]*engine.PreparedConditions{}}
	for _, c := range out.source.PointClauses(s.point.Name) {
		of := c.SourceModule()
		if len(w.rules) >= maxWatched || !slices.ContainsFunc(s.after.set, func(b *bundle.Bundle) bool { return hasModule(b, of) }) {
			continue
		}
		at := c.Head.Location
		for _, r := range of.Rules {
			if r.Head == c.Head {
				at = r.Location
			}
		}
		key := at.String() + module.PackagePath(of)
		if w.rules[key] == nil {
			w.rules[key] = &watchedRule{clause: c, place: at}
		}
		out.rules = append(out.rules, w.rules[key])
	}
	return out
}

// visitWorld evaluates the rules that were not true yet. It returns what was new, as a name of the answer.
func (v *sight) visitWorld(ctx context.Context, sp *space, w world) (*Counterexample, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(v.fixNamespace(sp.buildInput(w)))
	if err != nil {
		return nil, "", fmt.Errorf("writing an input: %w", err)
	}
	in, err := cases.DecodeInput(v.point, text)
	if err != nil {
		v.report.Invalid++
		return nil, "", nil
	}
	input, err := v.after.engine.Codec().Encode(in)
	if err != nil {
		return nil, "", fmt.Errorf("reading an input: %w", err)
	}
	v.report.Tried++
	var answer strings.Builder
	left := 0
	for i, r := range v.rules {
		if r.isDone() {
			continue
		}
		r.worlds++
		was := r.reached
		for r.reached < len(r.clause.Conditions) && v.isTrue(ctx, r, r.reached+1, input) {
			r.reached++
		}
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		if r.reached > was {
			fmt.Fprintf(&answer, "%d/%d ", i, r.reached)
		}
		if !r.isDone() {
			left++
		}
	}
	if left == 0 {
		return nil, "", errAllTrue
	}
	return nil, answer.String(), nil
}

// isTrue reports whether the first conditions of a rule are true together.
func (v *sight) isTrue(ctx context.Context, r *watchedRule, first int, input ast.Value) bool {
	if v.prepared[r] == nil {
		v.prepared[r] = map[int]*engine.PreparedConditions{}
	}
	p := v.prepared[r][first]
	if p == nil {
		var err error
		if p, err = v.source.PrepareConditions(ctx, r.clause, r.clause.Conditions[:first]); err != nil {
			r.failed = ctx.Err() == nil
			return false
		}
		v.prepared[r][first] = p
	}
	values, err := p.SolveInput(ctx, input)
	if err != nil {
		r.failed = ctx.Err() == nil
		return false
	}
	return values != nil
}

// listIdle returns the rules that no world made true.
func (w *watch) listIdle() []IdleRule {
	var out []IdleRule
	for _, r := range inOrder(w.rules) {
		if r.isDone() || r.worlds == 0 {
			continue
		}
		x := r.clause.Conditions[r.reached]
		idle := IdleRule{
			Name: r.clause.Name, File: r.place.File, Row: r.place.Row, EndRow: r.place.Row + strings.Count(string(r.place.Text), "\n"),
			Condition: module.SourceText(x), ConditionRow: r.place.Row, ConditionCol: r.place.Col, Worlds: r.worlds,
		}
		if x.Location != nil {
			idle.ConditionRow, idle.ConditionCol = x.Location.Row, x.Location.Col
		}
		out = append(out, idle)
	}
	return out
}

func hasModule(b *bundle.Bundle, m *ast.Module) bool {
	for _, own := range b.Modules {
		if own == m {
			return true
		}
	}
	return false
}
