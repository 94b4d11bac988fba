// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/term"
)

// Decide makes a decision about a subject with the active policies. It returns no error: if no policy
// decides, the answer is the fallback of the point, and the outcome of the record is not
// decision.Decided.
//
// Terms of fields of the input that the caller has already encoded may be given; they must equal the
// encoded fields.
func Decide[In, Out any](ctx context.Context, e *Engine, p decision.Point[In, Out], subject decision.Subject, in In, given ...term.Given) (Out, decision.Record) {
	// The evaluation may continue after its time is over, so it writes to memory that is read only if it
	// has ended.
	out := new(Out)
	q := &decisionRequest{
		name: p.Name, budget: p.Budget, subject: subject, in: in, given: given,
		answer: func(v ast.Value, pkg string) error {
			if err := e.codec.Decode(v, out, answerLimits(p.MaxResult, p.MaxBytes)); err != nil {
				return err
			}
			if o, ok := any(out).(decision.OutputWithOrigin); ok {
				o.SetDefaultRules(pkg)
			}
			if p.Check == nil {
				return nil
			}
			return p.Check(in, *out)
		},
	}
	snapshot := e.active.Load()
	rec := e.decideRequest(ctx, snapshot, q)
	if rec.Outcome != decision.Decided {
		// Not in out: an evaluation that continues may still write to it.
		undecided := e.AnswerUndecided(ctx, snapshot, p.EraseTypes(), subject, in).(Out)
		rec.Output = undecided
		e.emitRecord(rec)
		return undecided, rec
	}
	rec.Output = *out
	e.emitRecord(rec)
	return *out, rec
}

// DecideOn makes a decision with the policies of a snapshot, active or not, for a point whose types
// are known only at run time. The record goes to no sink. It serves replay, shadow evaluation and
// tools.
func DecideOn(ctx context.Context, e *Engine, s *Snapshot, p decision.UntypedPoint, subject decision.Subject, in any) (any, decision.Record) {
	out := reflect.New(p.Out)
	rec := e.decideRequest(ctx, s, &decisionRequest{
		name: p.Name, budget: p.Budget, subject: subject, in: in, aside: true,
		answer: func(v ast.Value, pkg string) error { return e.readAnswer(p, in, out, v, pkg) },
	})
	if rec.Outcome == decision.Decided {
		rec.Output = out.Elem().Interface()
	} else {
		rec.Output = e.AnswerUndecided(ctx, s, p, subject, in)
	}
	return rec.Output, rec
}

// answerLimits returns the limits of a point's answer, or the defaults where they are 0.
func answerLimits(nodes, bytes int) term.Limits {
	return term.Limits{Nodes: cmp.Or(nodes, decision.DefaultMaxResult), Bytes: cmp.Or(bytes, decision.DefaultMaxBytes), Text: decision.MaxText}
}

// decisionRequest is a decision to be made, without its types.
type decisionRequest struct {
	name    decision.Name
	budget  time.Duration
	subject decision.Subject
	in      any
	given   []term.Given
	// aside is true if no caller acts on the answer. Such a decision does not count against the active
	// revision.
	aside bool
	// judging is true if the decision is made again to find the bundles that caused a late one.
	judging bool
	// partial is true if the loaded policies decide even if others are missing.
	partial bool
	// answer receives the result; the evaluating goroutine calls it.
	answer func(v ast.Value, pkg string) error
}

// decideRequest makes the record except for its output.
func (e *Engine) decideRequest(ctx context.Context, s *Snapshot, q *decisionRequest) decision.Record {
	if !q.aside {
		e.deciding.Add(1)
		defer e.deciding.Add(-1)
	}
	q.budget *= e.patience
	start := e.clock()
	s = e.withoutWithheld(ctx, s, q.subject)
	in := s.scopeForSubject(q.subject)
	rec := decision.Record{
		ID: e.lastID.Add(1), Time: start, Point: q.name, Subject: q.subject,
		Revision: s.RevisionFor(q.subject), Bundles: in.bundles, Input: q.in,
	}
	end := func(outcome decision.Outcome, format string, args ...any) decision.Record {
		rec.Outcome, rec.Duration = outcome, e.clock().Sub(start)
		if format != "" {
			// The error of a built-in function may contain its operands, which a policy may have computed, so it may be
			// long.
			rec.Error = decision.TruncateText(fmt.Sprintf(format, args...), decision.MaxText)
		}
		return rec
	}
	if m, missing := s.missingIn(q.name, q.subject); missing && !q.partial {
		return end(decision.Failed, "bundle %s takes part in this decision and is missing: %s", m.Bundle, m.Reason)
	}
	if m, missing := decision.FindMissingFact(q.in); missing && in.dependsOnUsers(q.name) {
		return end(decision.Failed, "the fact %s is missing: %s", m.Fact, m.Message)
	}
	v := in.platform
	if in.takesPart(q.name) {
		// Decisions that are made aside are few or not urgent, and do not count against the time of live ones.
		if err := e.checkOverspent(in.tenant, in.revision, start); err != nil && !q.aside {
			e.notifyObservers(func(o Observer) { o.DecisionThrottled(in.tenant, q.name) })
			return end(decision.TimedOut, "%v", err)
		}
		var err error
		if v, err = e.viewFor(ctx, in, q); err != nil {
			return end(outcomeWithoutView(err), "%v", err)
		}
	}
	prepared, err := v.preparedQuery(ctx, q.name)
	if err != nil {
		return end(decision.Failed, "%v", err)
	}
	if !prepared.defined {
		return end(decision.Undefined, "no policy defines %s", q.name)
	}
	if len(prepared.withheld) > 0 {
		return end(decision.Failed, "%s takes part in %s and was rolled back, because decisions did not end in time with it: until it is changed or deleted, this is the strictest answer",
			strings.Join(bundle.ShortIDs(prepared.withheld), ", "), q.name)
	}
	input, err := e.codec.Encode(q.in, q.given...)
	if err != nil {
		return end(decision.Failed, "%v", err)
	}
	ev := newEvaluation(prepared, input, q)
	ev.revision = in.revision
	if !q.aside {
		ev.suspect = func() { e.suspectStuck(s, ev) }
	}
	outcome, err := e.runEvaluation(ctx, ev)
	if ev.late && !q.aside {
		e.investigateLate(s, ev)
	}
	if outcome != decision.TimedOut {
		rec.Rules = ruleIDs(ev.ruleLabels())
	}
	if err != nil {
		return end(outcome, "%v", err)
	}
	return end(outcome, "")
}

func (e *Engine) emitRecord(rec decision.Record) {
	for _, s := range e.sinks {
		s.RecordDecision(rec)
	}
}
