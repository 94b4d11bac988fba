// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
)

// answers are the decisions of both sides about one input.
type answers struct {
	input    any
	old, new decision.Record
	kind     compare.Kind // empty if it is no counterexample
	diff     *compare.Difference
	// conditionError is why Unless failed to evaluate; nil if it did not.
	conditionError error
}

// describeAnswers names the rules and reasons of both answers.
func (p *answers) describeAnswers() string {
	var out strings.Builder
	for _, r := range []decision.Record{p.old, p.new} {
		v := decision.VerdictOf(r)
		out.WriteString(string(r.Outcome) + " " + v.Word)
		names := map[string]bool{}
		for _, h := range v.Reasons {
			names[h.Rule+"/"+h.Reason] = true
		}
		out.WriteString(strings.Join(slices.Sorted(maps.Keys(names)), ",") + strings.Join(r.Rules, ",") + ";")
	}
	return out.String()
}

// decideBoth makes the decision about an input, as JSON values, with both sides. It returns nil if the
// input does not count.
func (s *searcher) decideBoth(ctx context.Context, input any) (*answers, error) {
	input = s.fixNamespace(input)
	text, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("writing an input: %w", err)
	}
	in, err := cases.DecodeInput(s.point, text)
	if _, missing := decision.FindMissingFact(in); err != nil || missing { // with a missing fact no rule of users is evaluated
		s.report.Invalid++
		return nil, nil
	}
	exempt, err := s.exempts.isExempt(ctx, s.after.engine, in)
	var unevaluated ConditionError
	if errors.As(err, &unevaluated) {
		s.report.Unevaluated++ // not exempt, so that a difference counts
	} else if err != nil {
		return nil, err
	}
	if exempt {
		s.report.Exempt++
		return nil, nil
	}
	p := &answers{input: input}
	if unevaluated.Err != nil {
		p.conditionError = unevaluated
	}
	if p.old, err = s.decideOnce(ctx, s.before, in); err != nil {
		return nil, err
	}
	if p.old.Outcome != decision.TimedOut {
		if p.new, err = s.decideOnce(ctx, s.after, in); err != nil {
			return nil, err
		}
	}
	if p.old.Outcome == decision.TimedOut || p.new.Outcome == decision.TimedOut {
		s.report.TimedOut++
		if s.late++; s.late == strikes {
			return nil, fmt.Errorf("searching %s: %d decisions in a row did not end in time: %w", s.point.Name, s.late, ErrLate)
		}
		return nil, nil
	}
	s.late = 0
	if p.old.Outcome != decision.Decided {
		s.report.Undecided++
		if s.Mode == NeverFails && len(s.after.set) > 0 {
			return nil, nil // the built-in policies alone do not decide: no bundle is to blame
		}
	}
	return p, s.judgeAnswers(p)
}

// decideOnce makes a decision, again if it is late.
func (s *searcher) decideOnce(ctx context.Context, side *side, in any) (decision.Record, error) {
	r := decision.Record{Point: s.point.Name, Subject: s.subject, Input: in}
	out, err := s.replay(ctx, side.engine, side.snapshot, r, engine.Strikes)
	if err != nil && ctx.Err() != nil {
		return out, ctx.Err()
	}
	return out, err
}

// judgeAnswers says whether two answers are a counterexample.
func (s *searcher) judgeAnswers(p *answers) error {
	if s.Mode == NeverFails {
		if p.new.Outcome != decision.Decided {
			p.kind = compare.Lost
		}
		return nil
	}
	if p.old.Outcome == p.new.Outcome && reflect.DeepEqual(p.old.Output, p.new.Output) {
		return nil
	}
	d, err := compare.DiffRecords(s.after.engine, p.old, p.new)
	if err != nil {
		return err
	}
	p.diff = d
	if d != nil && (s.Mode == Equal || s.Unless != "" || d.Kind == compare.Looser || d.Kind == compare.Lost) {
		p.kind = d.Kind
	}
	return nil
}

// confirmAnswers makes the decisions again, and counts answers that are not the same: policies whose
// answers differ each time are no proof of anything, and neither is an answer that is late the second time.
func (s *searcher) confirmAnswers(ctx context.Context, p *answers) (bool, error) {
	unevaluated := s.report.Unevaluated
	again, err := s.decideBoth(ctx, p.input)
	s.report.Unevaluated = unevaluated // the input was counted before
	if err != nil {
		return false, err
	}
	if again == nil || again.kind != p.kind || !reflect.DeepEqual(again.old.Output, p.old.Output) || !reflect.DeepEqual(again.new.Output, p.new.Output) {
		s.report.Unstable++
		return false, nil
	}
	return true, nil
}
