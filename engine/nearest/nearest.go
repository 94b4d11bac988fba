// SPDX-License-Identifier: Apache-2.0

// Package nearest finds what would have changed a decision: the conditions of the
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
	// Now are the rules that hold or refuse, and what each depends on. All of them
	// would have to let go.
	Now []Rule `json:"now,omitempty"`
	// Almost are rules that say nothing now and would with one condition more, the
	// nearest to its threshold first.
	Almost []Rule `json:"almost,omitempty"`
	// Partial is true when the time was over before all rules were looked at.
	Partial bool `json:"partial,omitempty"`
}

// Rule is a rule, and conditions of which one decides whether it is true. Of a
// rule that is, any of them; of one that is not, the only one that is missing.
type Rule struct {
	Rule   string `json:"rule"`
	Title  string `json:"title,omitempty"`
	Bundle string `json:"bundle,omitempty"`
	Place  string `json:"place,omitempty"`
	// Wish is what the rule says: hold, deny or exempt. It is empty for another rule
	// that gave a reason.
	Wish       string      `json:"wish,omitempty"`
	Conditions []Condition `json:"conditions"`
}

// Condition is one line of a rule.
type Condition struct {
	Text string `json:"text"`
	// Why says what its facts are, and what they would have to be.
	Why string `json:"why,omitempty"`
	// Distance is how far a number is from its threshold, as a part of that;
	// absent where there is none.
	Distance *float64 `json:"distance,omitempty"`
	// Helpers are the rules of policies that it refers to, as far as they decide
	// about it. Any of those that would become true would do; all of those that are
	// would have to let go.
	Helpers []Helper `json:"helpers,omitempty"`
	// More is how many definitions of helpers are not among them.
	More int `json:"more,omitempty"`
}

// Helper is one definition of a rule or function that a condition refers to, and
// conditions of which one decides about it, as in Rule.
type Helper struct {
	// Name is what the condition refers to, such as in_freeze or late(input.now).
	Name   string `json:"name"`
	Rule   string `json:"rule,omitempty"` // its id, if it has one of its own
	Bundle string `json:"bundle,omitempty"`
	Place  string `json:"place,omitempty"` // file:row:col
	// Holds reports whether the definition is true.
	Holds bool `json:"holds"`
	// Text is what its value is made of, and Why what the facts of that are.
	Text       string      `json:"text,omitempty"`
	Why        string      `json:"why,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// maxAlmost is how many rules Almost has at most.
const maxAlmost = 5

// wishes are the rules that hold, refuse or let through.
var wishes = []string{"hold", "holds", "deny", "exempt"}

// FindConditions works out what would have changed the answer of a record, by
// evaluating the conditions of rules one by one on the facts of the record, with
// the policies that made it. It looks only at rules that the point of the record
// reads: no hold of pods decides how a pod is changed. It ends with the context,
// with what it has by then. Its error is that the policies of the record are gone.
//
// A condition that refers to a helper, a rule or function of any policies, is shown
// with those conditions of the helper's definitions that decide about it, on the
// arguments of this call, three helpers deep. Where variables may have several
// values, it is those of the first hold that the record has of the rule, or else the
// first ones for which the other conditions are true. Told as it is written, and no
// more, is what has a `with` or is in a comprehension, and what is called with
// arguments that are worked out and large.
func FindConditions(ctx context.Context, e *engine.Engine, r decision.Record) (Result, error) {
	s := e.ActiveSnapshot()
	if s.RevisionFor(r.Subject) != r.Revision {
		return Result{}, fmt.Errorf("finding the nearest rule: the policies of revision %s are not active any more", bundle.ShortRevision(r.Revision))
	}
	input, err := e.Codec().Encode(r.Input)
	if err != nil {
		return Result{}, fmt.Errorf("finding the nearest rule: %w", err)
	}
	first := map[string]decision.Hold{} // of each rule
	for _, h := range decision.VerdictOf(r).Reasons {
		if _, later := first[h.Rule]; !later {
			first[h.Rule] = h
		}
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

// missingLine is a rule, and the only line that it is missing, if it is not true.
type missingLine struct {
	near    Rule
	frame   *frame
	missing *condition
}

// buildResult looks into helpers after it has looked at all rules, so that helpers do not
// take the time that the rules need.
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
