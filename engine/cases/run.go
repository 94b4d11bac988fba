// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// Result is the result of a case; it passed if there are no problems.
type Result struct {
	File     string          `json:"file"`
	Row      int             `json:"row"`
	Col      int             `json:"col"`
	Name     string          `json:"name"`
	Point    decision.Name   `json:"point"`
	Problems []string        `json:"problems,omitempty"`
	Record   decision.Record `json:"record"`
}

// HasPassed reports whether the case passed.
func (r Result) HasPassed() bool { return len(r.Problems) == 0 }

// patience is the least budget of a point here: cases test the answers, not the time, and machines
// that run tests may be slow.
const patience = 10 * time.Second

// Option changes how cases are run.
type Option func(*decision.Subject)

// InNamespace makes decisions in the namespace of a tenant, since its bundles decide nowhere else.
func InNamespace(namespace string) Option {
	return func(s *decision.Subject) { s.Namespace = namespace }
}

// RunFile runs the cases of a file with the built-in policies of an engine and a set of bundles.
func RunFile(ctx context.Context, e *engine.Engine, set bundle.Set, f File, opts ...Option) []Result {
	out := make([]Result, 0, len(f.Cases))
	var last compiled
	for _, c := range f.Cases {
		r := Result{File: f.Path, Row: c.Row, Col: c.Col, Name: c.Name, Point: c.Point}
		about := decision.Subject{Kind: "Case", Name: c.Name}
		for _, o := range opts {
			o(&about)
		}
		err := last.compileBundles(ctx, e, set, c.Bundles)
		if err == nil {
			err = runCase(ctx, e, last.snapshot, f, c, about, &r)
		}
		if err != nil {
			r.Problems = append(r.Problems, err.Error())
		}
		out = append(out, r)
	}
	return out
}

// compiled has the policies of a case. Most cases of a file have the same policies as the previous one.
type compiled struct {
	bundles  map[string]string
	snapshot *engine.Snapshot
}

func (last *compiled) compileBundles(ctx context.Context, e *engine.Engine, set bundle.Set, bundles map[string]string) error {
	if last.snapshot != nil && maps.Equal(last.bundles, bundles) {
		return nil
	}
	if len(bundles) > 0 {
		b, err := bundle.FromFiles("case", bundles)
		if err != nil {
			return err
		}
		set = append(slices.Clone(set), b)
	}
	s := e.BaseSnapshot()
	if len(set) > 0 {
		var err error
		if s, err = e.CompileBundles(ctx, set); err != nil {
			return err
		}
	}
	last.bundles, last.snapshot = bundles, s
	return nil
}

func runCase(ctx context.Context, e *engine.Engine, s *engine.Snapshot, f File, c Case, about decision.Subject, r *Result) error {
	p, ok := catalog.FindPoint(c.Point)
	if !ok {
		return fmt.Errorf("there is no decision point %s", c.Point)
	}
	p.Budget = max(p.Budget, patience)
	in, err := f.CaseInput(c, p)
	if err != nil {
		return err
	}
	answer, rec := engine.DecideOn(ctx, e, s, p, about, in)
	r.Record = rec
	want := c.WantOutcome
	if want == "" {
		want = decision.Decided
	}
	if rec.Outcome != want {
		r.Problems = append(r.Problems, fmt.Sprintf("the outcome is %s, want %s: %s", rec.Outcome, want, rec.Error))
		return nil
	}
	for _, id := range c.WantRules {
		if !slices.Contains(rec.Rules, id) {
			r.Problems = append(r.Problems, fmt.Sprintf("the rule %s took no part; those that did are %v", id, rec.Rules))
		}
	}
	got, err := e.Codec().Encode(answer)
	if err != nil {
		return err
	}
	wanted, err := e.Codec().Encode(c.Want)
	if err != nil {
		return err
	}
	r.Problems = append(r.Problems, diffAnswer("", p.Out, got, wanted)...)
	return nil
}

// diffAnswer lists how an answer differs from the wanted one. Of objects it compares only the wanted
// keys, other values as a whole. A field that the answer leaves out because it is zero equals an
// explicit zero.
func diffAnswer(path string, t reflect.Type, got, want ast.Value) []string {
	w, ok := want.(ast.Object)
	g, both := got.(ast.Object)
	if !ok || !both {
		if got.Compare(want) == 0 {
			return nil
		}
		if path == "" {
			path = "the answer"
		}
		return []string{fmt.Sprintf("%s is %v, want %v", path, got, want)}
	}
	var out []string
	w.Foreach(func(k, v *ast.Term) {
		key, _ := k.Value.(ast.String)
		below := string(key)
		if path != "" {
			below = path + "." + below
		}
		within, zero := answerPart(t, string(key))
		value := g.Get(k)
		switch {
		case value != nil:
			out = append(out, diffAnswer(below, within, value.Value, v.Value)...)
		case zero == nil || zero.Compare(v.Value) != 0:
			out = append(out, fmt.Sprintf("%s is missing, want %v", below, v))
		}
	})
	return out
}

// answerPart returns the type of a part of an answer, and its value if it is left out; nil if it never
// is.
func answerPart(t reflect.Type, key string) (reflect.Type, ast.Value) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t != nil && t.Kind() == reflect.Map:
		return t.Elem(), nil
	case t == nil || t.Kind() != reflect.Struct:
		return nil, nil
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name != key:
		case options == "omitempty" && field.Type.Kind() == reflect.Bool:
			return field.Type, ast.Boolean(false)
		case options == "omitempty" && field.Type.Kind() == reflect.String:
			return field.Type, ast.String("")
		default:
			return field.Type, nil
		}
	}
	return nil, nil
}
