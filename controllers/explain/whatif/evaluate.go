// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/record/mask"
)

// Basis is what an answer is based on: decisions that can be made again.
type Basis struct {
	Engine *engine.Engine
	// Records are the decisions, with their inputs. At most one is of each point.
	Records []decision.Record
	// Narrow returns an output without what does not concern the subject of the answer; nil if all does.
	Narrow func(output any) any
}

// invalidError says that a change cannot be made.
type invalidError struct{ err error }

func (e invalidError) Error() string { return e.err.Error() }

// DecideAgain makes the decisions again with changed facts, by the policies that made them. A change applies to each decision whose input
// has the fact. The other decisions are not made again. Values and messages of which package mask says that they are secret are masked.
//
// Facts that are computed from others keep their values.
func (b *Basis) DecideAgain(ctx context.Context, changes []Change) *Result {
	if b == nil || len(b.Records) == 0 {
		return &Result{Error: "no decision of a policy is remembered that could be made again"}
	}
	out := &Result{Facts: make([]Fact, len(changes))}
	asked, err := b.selectRecords(changes)
	if err != nil {
		return &Result{Invalid: err.Error()}
	}
	hides, err := mask.New()
	if err != nil {
		return &Result{Error: err.Error()}
	}
	s := b.Engine.ActiveSnapshot()
	for _, q := range asked {
		if s.RevisionFor(q.record.Subject) != q.record.Revision {
			return &Result{Error: fmt.Sprintf("the policies %s that decided are not active any more; ask again after the next decision", bundle.ShortRevision(q.record.Revision))}
		}
		q.line = hides.BeginLine()
		d, err := b.decideTwice(ctx, s, q, out.Facts)
		var no invalidError
		switch {
		case errors.As(err, &no):
			return &Result{Invalid: no.Error()}
		case err != nil:
			return &Result{Error: err.Error()}
		case ctx.Err() != nil:
			return &Result{Error: "there was no time to decide again; ask again in a moment"}
		}
		out.Decisions = append(out.Decisions, *d)
	}
	return out
}

// question is a decision to be made again.
type question struct {
	point   decision.UntypedPoint
	record  decision.Record
	changes []fieldChange
	line    *mask.Line
}

// fieldChange is a change of a fact of a known type. place is the position of the change in all changes.
type fieldChange struct {
	Change
	kind  reflect.Type
	place int
}

// selectRecords finds the decisions whose inputs have the facts. Each fact must be in one of them.
func (b *Basis) selectRecords(changes []Change) ([]*question, error) {
	all := make([]*question, 0, len(b.Records))
	for i := range b.Records {
		p, ok := catalog.FindPoint(b.Records[i].Point)
		if !ok {
			return nil, fmt.Errorf("there is no decision point %s", b.Records[i].Point)
		}
		all = append(all, &question{point: p, record: b.Records[i]})
	}
	for i, c := range changes {
		if isIdentity(c.steps) {
			return nil, fmt.Errorf("%s may not be changed: the answers would tell what policies allow to other users and namespaces", c.fact)
		}
		var nearest *unknownFact
		var at decision.Name
		found := false
		for _, q := range all {
			kind, unknown := resolveField(q.point.In, c.steps)
			if unknown == nil {
				q.changes, found = append(q.changes, fieldChange{c, kind, i}), true
			} else if unknown.isNearerThan(nearest) {
				nearest, at = unknown, q.point.Name
			}
		}
		if !found {
			return nil, fmt.Errorf("%s is no fact of %s: %w", c.fact, at, nearest)
		}
	}
	return slices.DeleteFunc(all, func(q *question) bool { return len(q.changes) == 0 }), nil
}

// isIdentity is true for facts that say who asks, and where.
func isIdentity(steps []step) bool {
	last := steps[len(steps)-1].name
	return steps[0].name == "request" && (len(steps) == 1 || steps[1].name == "user") || last == "namespace" && len(steps) <= 2
}

// decideTwice makes one decision twice, with its facts as they are and with the changed ones, and notes both values of these facts.
func (b *Basis) decideTwice(ctx context.Context, s *engine.Snapshot, q *question, facts []Fact) (*Decision, error) {
	before, err := json.Marshal(q.record.Input)
	if err != nil {
		return nil, fmt.Errorf("reading the facts of %s: %w", q.point.Name, err)
	}
	after, err := q.changeInput(before)
	if err != nil {
		return nil, invalidError{err}
	}
	input := reflect.New(q.point.In)
	if err := decodeStrictly(after, input.Interface()); err != nil {
		return nil, invalidError{fmt.Errorf("reading the changed facts of %s: %w", q.point.Name, err)}
	}
	if after, err = json.Marshal(input.Elem().Interface()); err != nil { // with the facts that have become zero
		return nil, fmt.Errorf("reading the changed facts of %s: %w", q.point.Name, err)
	}
	if err := q.noteFacts(facts, q.line.MaskJSON("input", before), q.line.MaskJSON("input", after)); err != nil {
		return nil, err
	}
	_, was := engine.DecideOn(ctx, b.Engine, s, q.point, q.record.Subject, q.record.Input)
	if was.Outcome != decision.Decided && q.record.Outcome == decision.Decided {
		return nil, fmt.Errorf("%s was not decided again with the facts as they are (%s); ask again in a moment", q.point.Name, was.Outcome)
	}
	_, is := engine.DecideOn(ctx, b.Engine, s, q.point, q.record.Subject, input.Elem().Interface())
	if b.Narrow != nil {
		was.Output, is.Output = b.Narrow(was.Output), b.Narrow(is.Output)
	}
	return b.compareAnswers(q.line, was, is)
}

// changeInput returns the input, as JSON, with the changes.
func (q *question) changeInput(input []byte) ([]byte, error) {
	tree, err := decodeTree(input)
	if err != nil {
		return nil, err
	}
	for _, c := range q.changes {
		if c.remove {
			tree, err = removeValue(tree, c.steps)
		} else {
			var raw json.RawMessage
			if raw, err = c.readValue(c.kind); err != nil {
				return nil, err
			}
			var value any
			if value, err = decodeTree(raw); err == nil {
				tree, err = setValue(tree, c.steps, value)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(tree)
}

// noteFacts notes the values of the changed facts in two inputs.
func (q *question) noteFacts(facts []Fact, before, after []byte) error {
	was, err := decodeTree(before)
	if err != nil {
		return err
	}
	is, err := decodeTree(after)
	if err != nil {
		return err
	}
	for _, c := range q.changes {
		facts[c.place] = Fact{Name: c.fact, Was: valueText(findValue(was, c.steps)), Is: valueText(findValue(is, c.steps))}
	}
	return nil
}
