// SPDX-License-Identifier: Apache-2.0

// Package nearest finds changes of facts that would have changed a decision: the conditions of the
// rules that hold or refuse, and the rules that miss a single condition.
package nearest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Result is what would have changed an answer.
type Result struct {
	// Now are the rules that hold or refuse, with their conditions. To change the answer, all of them
	// would have to become false.
	Now []Rule `json:"now,omitempty"`
	// Almost are rules that are not true, but would be with one more condition, the nearest to its
	// threshold first.
	Almost []Rule `json:"almost,omitempty"`
	// Partial is true if the time was over before all rules were evaluated.
	Partial bool `json:"partial,omitempty"`
}

// Rule is a rule, with the conditions that decide whether it is true: for a rule that is true each
// condition, for one that is not the only missing one.
type Rule struct {
	Rule   string `json:"rule"`
	Title  string `json:"title,omitempty"`
	Bundle string `json:"bundle,omitempty"`
	Place  string `json:"place,omitempty"`
	// Wish is what the rule does: hold, deny or exempt. It is empty for another rule that gave a reason.
	Wish       string      `json:"wish,omitempty"`
	Conditions []Condition `json:"conditions"`
}

// Condition is one line of a rule.
type Condition struct {
	Text string `json:"text"`
	// Why says which values the facts of the condition have, and which they would need.
	Why string `json:"why,omitempty"`
	// Distance is how far a number is from its threshold, relative to the threshold; absent if there is
	// none.
	Distance *float64 `json:"distance,omitempty"`
	// Helpers are the definitions that the condition refers to, as far as they decide about it. If it is
	// not true, any one of them that became true would suffice; if it is true, all that are true would
	// have to become false.
	Helpers []Helper `json:"helpers,omitempty"`
	// More is how many definitions of helpers are not among them.
	More int `json:"more,omitempty"`
}

// Helper is one definition of a rule or function that a condition refers to, with the conditions that
// decide about it, as in Rule.
type Helper struct {
	// Name is what the condition refers to, such as in_freeze or late(input.now).
	Name   string `json:"name"`
	Rule   string `json:"rule,omitempty"` // its id, if it has one of its own
	Bundle string `json:"bundle,omitempty"`
	Place  string `json:"place,omitempty"` // file:row:col
	// Holds reports whether the definition is true.
	Holds bool `json:"holds"`
	// Text is the expression of its value, and Why the facts in it.
	Text       string      `json:"text,omitempty"`
	Why        string      `json:"why,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// maxAlmost is how many rules Almost has at most.
const maxAlmost = 5

// wishes are the names of the rules that hold, refuse or exempt.
var wishes = []string{"hold", "holds", "deny", "exempt"}

// FindConditions finds what would have changed the answer of a record. It evaluates the conditions of
// rules one by one on the facts of the record, with the policies that made it. It uses only rules that
// the point of the record reads. When the context ends, it returns what it has found. It returns an
// error if the policies of the record are not loaded any more.
//
// A condition that refers to a helper, a rule or function of any policies, is shown
// with those conditions of the helper's definitions that decide about it, for the arguments of this
// call, three levels deep. If variables may have several values, those of the rule's first hold in the
// record are used, or otherwise the first ones for which the other conditions are true. Only the
// source is shown of a condition with a `with` or in a comprehension, and of a call with large
// computed arguments.
func FindConditions(ctx context.Context, e *engine.Engine, r decision.Record) (Result, error) {
	s := e.ActiveSnapshot()
	if s.RevisionFor(r.Subject) != r.Revision {
		return Result{}, fmt.Errorf("finding the nearest rule: the policies of revision %s are not active any more", bundle.ShortRevision(r.Revision))
	}
	input, err := e.Codec().Encode(r.Input)
	if err != nil {
		return Result{}, fmt.Errorf("finding the nearest rule: %w", err)
	}
	first := map[string]decision.Hold{} // by rule
	for _, h := range decision.VerdictOf(r).Reasons {
		if _, later := first[h.Rule]; !later {
			first[h.Rule] = h
		}
	}
	if _, missing := decision.FindMissingFact(r.Input); missing { // no rule was evaluated
		return Result{}, nil
	}
	f := &finder{ctx: ctx, source: e.PolicySource(s, r.Subject), input: input, known: map[question]answer{}}
	var all []missingLine
	for _, c := range f.source.PointClauses(r.Point) {
		if ctx.Err() != nil {
			break
		}
		wish := slices.Contains(wishes, c.Name)
		hold, holds := first[c.Rule.ID]
		if !wish && !(c.Own && holds) {
			continue
		}
		near := Rule{Rule: c.Rule.ID, Title: c.Rule.Title, Bundle: c.Rule.Bundle, Place: c.Rule.Place}
		if wish {
			near.Wish = strings.TrimSuffix(c.Name, "s")
		}
		fr := f.frameOf(c)
		switch fires := f.isClauseTrue(fr); {
		case fires && holds:
			f.narrowToHold(fr, hold)
			near.Conditions = f.holdingConditions(fr, shallow)
			all = append(all, missingLine{near, fr, nil})
		case !fires && wish:
			if l := f.findMissingCondition(fr); l != nil {
				near.Conditions = f.lackingConditions(fr, l, shallow)
				all = append(all, missingLine{near, fr, l})
			}
		}
	}
	return f.buildResult(all), nil
}

// missingLine is a rule, with the only line that it misses, if it is not true.
type missingLine struct {
	near    Rule
	frame   *frame
	missing *condition
}

// buildResult searches helpers after it has evaluated all rules, so that helpers do not take the time
// that the rules need.
func (f *finder) buildResult(all []missingLine) Result {
	var out Result
	for _, one := range all {
		var deep []Condition
		if one.missing != nil {
			deep = f.lackingConditions(one.frame, one.missing, maxDeep)
		} else {
			deep = f.holdingConditions(one.frame, maxDeep)
		}
		if f.ctx.Err() == nil {
			one.near.Conditions = deep
		}
		switch {
		case len(one.near.Conditions) == 0:
		case one.missing != nil:
			out.Almost = append(out.Almost, one.near)
		default:
			out.Now = append(out.Now, one.near)
		}
	}
	slices.SortStableFunc(out.Almost, func(a, b Rule) int { return byDistance(a.Conditions[0], b.Conditions[0]) })
	out.Almost = out.Almost[:min(len(out.Almost), maxAlmost)]
	out.Partial = f.ctx.Err() != nil
	return out
}
