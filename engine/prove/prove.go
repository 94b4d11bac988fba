// SPDX-License-Identifier: Apache-2.0

// Package prove searches for an input for which new policies answer less strictly than old ones. It
// makes inputs from the facts that rules read and the values that these compare them with, makes the
// decision with both, and shrinks the first input for which the answers differ.
//
// That no such input is found is a statement about the inputs that were tried, and about no other.
package prove

import (
	"context"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/cases"
	"github.com/regatta-sh/regatta/engine/compare"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Mode says what a counterexample is.
type Mode string

// The modes.
const (
	// NeverLooser: the new policies answer less strictly, or do not decide what the old ones decide.
	NeverLooser Mode = "never-looser"
	// Equal: the answers differ.
	Equal Mode = "equal"
	// NeverFails: the new policies do not decide.
	NeverFails Mode = "never-fails"
)

// Side is one of the two sets of policies.
type Side struct {
	Builtin *bundle.Bundle
	Set     bundle.Set
}

// Limits bound a search.
type Limits struct {
	// Worlds is how many inputs are tried at each point, MaxWorlds at most.
	Worlds int
	// Elements is how many elements a collection has that varies.
	Elements int
	// Timeout is how long the search takes at most.
	Timeout time.Duration
	// Seed makes the draw; the same seed draws the same inputs.
	Seed uint64
}

// MaxWorlds bounds Limits.Worlds: a hash of each input that was drawn is in memory, about 100 MB for all.
const MaxWorlds = 2_000_000

// DefaultLimits are 20,000 inputs of up to 2 elements, and 2 minutes.
func DefaultLimits() Limits {
	return Limits{Worlds: 20_000, Elements: 2, Timeout: 2 * time.Minute, Seed: 1}
}

// Question is what is searched for.
type Question struct {
	Mode Mode
	// Old is not used with NeverFails.
	Old, New Side
	// Points are the decision points to search; all that the bundles take part in if there are none.
	Points []decision.Name
	// Namespace is the one whose bundles decide; empty for bundles of the platform.
	Namespace string
	// Unless is a condition on the input in Rego. Where it is true, the answers may differ.
	Unless string
	// Cases are files of cases whose inputs are varied, the first ones first.
	Cases []cases.File
	// Records are recorded decisions whose inputs are varied too.
	Records []decision.Record
	Limits  Limits
	// Engine compiles the policies, and must have New.Builtin; one is made and closed if it is nil.
	Engine *engine.Engine
}

// Report is the result of a search.
type Report struct {
	Mode    Mode            `json:"mode"`
	Seed    uint64          `json:"seed"`
	Points  []PointReport   `json:"points"`
	Found   *Counterexample `json:"counterexample,omitempty"`
	Stopped string          `json:"stopped,omitempty"` // why the search ended early
	// Interrupted is true if the caller ended the search.
	Interrupted bool          `json:"interrupted,omitempty"`
	Took        time.Duration `json:"-"`
}

// PointReport says how far the search came at a point.
type PointReport struct {
	Point decision.Name `json:"point"`
	// Facts are those that varied, and Values how many values they have together.
	Facts  []FactReport `json:"facts"`
	Values int          `json:"values"`
	// Bases is how many inputs were varied.
	Bases int `json:"bases"`
	// Elements is how many elements a collection had at most.
	Elements int `json:"elements"`
	// Worlds is how many inputs there are; 0 if there are more than were counted.
	Worlds int `json:"worlds,omitempty"`
	// Tried is how many inputs both sides decided. Undecided are those that the old policies did not
	// decide, or the built-in ones alone with NeverFails; TimedOut are those with a late answer.
	Tried     int `json:"tried"`
	Undecided int `json:"undecided,omitempty"`
	TimedOut  int `json:"timedOut,omitempty"`
	// Invalid are inputs that are not of the type of the point, or in which a fact is missing, and Exempt those for which Unless is true.
	Invalid int `json:"invalid,omitempty"`
	Exempt  int `json:"exempt,omitempty"`
	// Unevaluated are inputs for which Unless failed to evaluate, which counts as not true.
	Unevaluated int `json:"unevaluated,omitempty"`
	// Unstable are counterexamples whose second answers were others, so that they were dropped.
	Unstable int `json:"unstable,omitempty"`
	// Exhausted is true if all inputs were tried that the facts and values make. Rules may depend on other values.
	Exhausted bool `json:"exhausted"`
	// NotVaried are facts that rules read and that did not vary.
	NotVaried []string `json:"notVaried,omitempty"`
}

// FactReport is a fact that varied, and how many values it had.
type FactReport struct {
	Name   string `json:"name"`
	Values int    `json:"values"`
	// Tried are the values that it had beside those of the bases, maxShown at most; long texts are cut.
	Tried []any `json:"tried,omitempty"`
}

// Counterexample is an input for which the answers differ in the way that the mode forbids.
type Counterexample struct {
	Kind  compare.Kind  `json:"kind"`
	Point decision.Name `json:"point"`
	Input any           `json:"input"`
	Old   *compare.Side `json:"old,omitempty"`
	New   compare.Side  `json:"new"`
	// Fields are the fields of the answer that differ.
	Fields []string `json:"fields,omitempty"`
	// Lost are the rules of the old policies whose reasons the new answer lacks, and Added those of the
	// new policies whose reasons the old one lacks.
	Lost  []Clause `json:"lost,omitempty"`
	Added []Clause `json:"added,omitempty"`
	// ConditionError is why Unless failed to evaluate for the input; empty if it did not.
	ConditionError string `json:"conditionError,omitempty"`
	// Shrunk is how many changes of the base are left.
	Shrunk int `json:"changes"`
}

// Clause is a clause of a rule that gave a reason.
type Clause struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	Place  string `json:"place,omitempty"` // file:row:col
	Bundle string `json:"bundle,omitempty"`
}

// side is policies that are ready to decide.
type side struct {
	engine   *engine.Engine
	snapshot *engine.Snapshot
	set      bundle.Set
	builtin  *bundle.Bundle
}

// patience is how many budgets of the point an evaluation may take: the machine may be busy.
const patience = 5

// newSides compiles the policies. Sides with the same built-in policies share an engine.
func newSides(ctx context.Context, q Question) (before, after *side, stop func(), err error) {
	e := q.Engine
	stop = func() {}
	if e == nil {
		// Only the points that are searched are prepared.
		if e, err = engine.FromBundle(q.New.Builtin, engine.WithPatience(patience), engine.WithPoints()); err != nil {
			return nil, nil, stop, err
		}
		stop = e.Close
	}
	after, err = newSide(ctx, e, q.New)
	if err != nil || q.Mode == NeverFails {
		return &side{e, e.BaseSnapshot(), nil, q.New.Builtin}, after, stop, err
	}
	if q.Old.Builtin != q.New.Builtin {
		own, err := engine.FromBundle(q.Old.Builtin, engine.WithPatience(patience), engine.WithPoints())
		if err != nil {
			return nil, nil, stop, err
		}
		both := stop
		stop = func() { own.Close(); both() }
		e = own
	}
	before, err = newSide(ctx, e, q.Old)
	return before, after, stop, err
}

func newSide(ctx context.Context, e *engine.Engine, s Side) (*side, error) {
	snapshot := e.BaseSnapshot()
	if len(s.Set) > 0 {
		var err error
		if snapshot, err = e.CompileBundles(ctx, s.Set); err != nil {
			return nil, err
		}
	}
	return &side{e, snapshot, s.Set, s.Builtin}, nil
}

// dataValue returns the data of all bundles of a side.
func (s *side) dataValue() ast.Value {
	out := ast.NewObject()
	for _, b := range append(bundle.Set{s.builtin}, s.set...) {
		if len(b.Data) == 0 {
			continue
		}
		if v, err := ast.InterfaceToValue(b.Data); err == nil {
			if more, ok := v.(ast.Object); ok {
				if merged, ok := out.Merge(more); ok {
					out = merged
				}
			}
		}
	}
	return out
}
