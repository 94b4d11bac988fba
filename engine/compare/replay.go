// SPDX-License-Identifier: Apache-2.0

// Package compare makes decisions again with other policies, reports which answers differ, and counts
// the differences.
package compare

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// Difference is a decision that another revision would make differently.
type Difference struct {
	Kind    Kind             `json:"kind"`
	Point   decision.Name    `json:"point"`
	Subject decision.Subject `json:"subject"`
	Record  uint64           `json:"record"` // its id
	// Then is the answer in the record, Now the new answer.
	Then Side `json:"then"`
	Now  Side `json:"now"`
	// Fields are the top-level fields of the answer that differ.
	Fields []string `json:"fields,omitempty"`
}

// Side is one of two answers.
type Side struct {
	Revision string           `json:"revision"`
	Outcome  decision.Outcome `json:"outcome"`
	Verdict  decision.Verdict `json:"verdict"`
	Output   any              `json:"output,omitempty"`
	Rules    []string         `json:"rules,omitempty"`
	Error    string           `json:"error,omitempty"`
}

// UnknownPointError says that a record is of a point that does not exist in the contract.
type UnknownPointError struct{ Point decision.Name }

func (e UnknownPointError) Error() string {
	return fmt.Sprintf("%s is not a decision point", e.Point)
}

// ReplayAndDiff makes a decision again with the policies of a snapshot. It reports a
// difference, or nil when the answer is the same. Its errors are those of ReplayWithRetries, and of
// answers that cannot be compared.
func ReplayAndDiff(ctx context.Context, e *engine.Engine, s *engine.Snapshot, r decision.Record, tries int) (*Difference, error) {
	now, err := ReplayWithRetries(ctx, e, s, r, tries)
	if err != nil {
		return nil, err
	}
	return DiffRecords(e, r, now)
}

// ReplayWithRetries makes a decision again like ReplayOnce, for callers that judge policies by the
// result. If the decision is late although the recorded one was in time, it tries up to so many times,
// since other work may have used the processors. The engine itself uses engine.Strikes. Its error is
// an UnknownPointError, or the cause of the context's end.
func ReplayWithRetries(ctx context.Context, e *engine.Engine, s *engine.Snapshot, r decision.Record, tries int) (now decision.Record, err error) {
	for n := range max(tries, 1) {
		if n > 0 {
			runtime.GC() // free the memory of the late evaluation, so that this one has as much
		}
		if now, err = ReplayOnce(ctx, e, s, r); err != nil {
			return now, err
		}
		if ctx.Err() != nil {
			return now, fmt.Errorf("replaying: %w", context.Cause(ctx))
		}
		if now.Outcome != decision.TimedOut || r.Outcome == decision.TimedOut {
			break
		}
	}
	return now, nil
}

// ReplayOnce makes a decision again with the policies of a snapshot. No caller acts on it. Its error
// is an UnknownPointError.
func ReplayOnce(ctx context.Context, e *engine.Engine, s *engine.Snapshot, r decision.Record) (decision.Record, error) {
	p, ok := catalog.FindPoint(r.Point)
	if !ok {
		return decision.Record{}, fmt.Errorf("replaying record %d: %w", r.ID, UnknownPointError{r.Point})
	}
	_, now := engine.DecideOn(ctx, e, s, p, r.Subject, r.Input)
	return now, nil
}

func sideOf(r decision.Record) Side {
	return Side{Revision: r.Revision, Outcome: r.Outcome, Verdict: decision.VerdictOf(r), Output: r.Output, Rules: r.Rules, Error: r.Error}
}

// differingFields compares two answers. As in policies, nil and empty are equal.
func differingFields(e *engine.Engine, a, b any) ([]string, error) {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if !va.IsValid() || !vb.IsValid() || va.Type() != vb.Type() || va.Kind() != reflect.Struct {
		return nil, fmt.Errorf("comparing answers: they are a %T and a %T", a, b)
	}
	var out []string
	for i := range va.NumField() {
		x, err := e.Codec().Encode(va.Field(i).Interface())
		if err != nil {
			return nil, fmt.Errorf("comparing answers: %w", err)
		}
		y, err := e.Codec().Encode(vb.Field(i).Interface())
		if err != nil {
			return nil, fmt.Errorf("comparing answers: %w", err)
		}
		if x.Compare(y) != 0 {
			out = append(out, va.Type().Field(i).Name)
		}
	}
	slices.Sort(out)
	return out, nil
}
