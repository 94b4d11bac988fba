// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
)

// How many levels of helpers are searched: none, and the most.
const shallow, maxDeep = 0, 3

// finder evaluates conditions of policies on an input.
type finder struct {
	ctx    context.Context
	source *engine.Source
	input  ast.Value
	// known caches the answers to queries, since the same queries are made several times for a condition.
	known map[question]answer
}

// question is conditions as text, with the module that defines the names in them.
type question struct {
	module     *ast.Module
	conditions string
}

// answer is a result of SolveConditions.
type answer struct {
	values map[ast.Var]ast.Value
	err    error
}

// frame is a clause, with the facts about the call that it is evaluated for.
type frame struct {
	clause engine.Clause
	locals ast.VarSet
	lines  []*condition
	// before binds arguments, and after binds the element that the clause is evaluated for.
	before, after ast.Body
	// paths are the variables that represent a fact.
	paths map[ast.Var]ast.Ref
}

// condition is something that must be true for a clause to be true.
type condition struct {
	expr *ast.Expr
	text string
	kind kind
}

// namesAreUsed reports whether other conditions use the names that a condition assigns. If they do
// not, it only matters that there is a value to assign.
func (fr *frame) namesAreUsed(l *condition) bool {
	named := ast.NewVarSet()
	for _, t := range engine.DeclaredTerms(l.expr) {
		named.Update(t.Vars())
	}
	return slices.ContainsFunc(fr.lines, func(o *condition) bool {
		return o != l && o.kind != heads && len(named.Intersect(o.expr.Vars(ast.VarVisitorParams{}))) > 0
	})
}

type kind int

const (
	asks   kind = iota // true or false
	names              // assigns a name, if there is a value
	heads              // a reference that the head needs to have a value
	values             // the value itself
)

// newFrame makes a frame with only the conditions of a clause.
func newFrame(c engine.Clause, paths map[ast.Var]ast.Ref) *frame {
	fr := &frame{clause: c, locals: c.LocalVars(), paths: map[ast.Var]ast.Ref{}}
	maps.Copy(fr.paths, paths)
	for _, x := range c.Conditions {
		if t, ok := x.Terms.(*ast.Term); ok && ast.IsConstant(t.Value) && t.Equal(ast.BooleanTerm(true)) {
			continue // OPA adds it to a rule without conditions
		}
		l := &condition{expr: x, text: textOf(x)}
		if !isQuestion(x) {
			l.kind = names
		}
		fr.lines = append(fr.lines, l)
		if to := engine.DeclaredTerms(x); x.IsAssignment() && len(to) == 1 {
			fr.bindFactPath(to[0], x.Operand(1))
		}
	}
	return fr
}

// frameOf returns the frame of a rule on its own, without a call and its arguments.
func (f *finder) frameOf(c engine.Clause) *frame {
	fr := newFrame(c, nil)
	f.addHeadReferences(fr, c.Head.Key, c.Head.Value)
	return fr
}

// bindFactPath notes that a variable represents a fact.
func (fr *frame) bindFactPath(name, fact *ast.Term) {
	if v, ok := name.Value.(ast.Var); ok && !v.IsWildcard() {
		if ref := fr.factPath(fact); ref != nil {
			fr.paths[v] = ref
		}
	}
}

// factPath is the path of the fact that a term represents, below the input; nil if there is none.
func (fr *frame) factPath(t *ast.Term) ast.Ref {
	switch v := t.Value.(type) {
	case ast.Var:
		return fr.paths[v]
	case ast.Ref:
		if !v.IsGround() {
			return nil
		}
		if v.HasPrefix(ast.InputRootRef) {
			return v
		}
		if name, ok := v[0].Value.(ast.Var); ok && fr.paths[name] != nil {
			return fr.paths[name].Concat(v[1:])
		}
	}
	return nil
}

// addHeadReferences adds the references in terms of the head: if they are undefined, the clause has no value.
func (f *finder) addHeadReferences(fr *frame, terms ...*ast.Term) {
	known := map[string]bool{}
	for _, l := range fr.lines {
		if t, ok := l.expr.Terms.(*ast.Term); ok {
			known[t.String()] = true
		}
	}
	for _, t := range terms {
		if t == nil {
			continue
		}
		walkReferences(t, func(t *ast.Term) bool {
			ref, isRef := t.Value.(ast.Ref)
			fact := isRef && len(ref) > 1 && ref.HasPrefix(ast.InputRootRef)
			if !fact && !f.refersToRule(fr, t) || known[t.String()] {
				return true
			}
			known[t.String()] = true
			x := ast.Equality.Expr(ast.VarTerm(fmt.Sprintf("__head%d__", len(known))), t)
			fr.lines = append(fr.lines, &condition{expr: x, text: textOf(t), kind: heads})
			return true
		})
	}
}

func (f *finder) refersToRule(fr *frame, t *ast.Term) bool {
	if call, ok := t.Value.(ast.Call); ok {
		return len(f.source.FindDefinitions(fr.clause, fr.locals, call[0], call[1:])) > 0
	}
	return len(f.source.FindDefinitions(fr.clause, fr.locals, t, nil)) > 0
}

// isHelper reports whether a reference is to the whole value of a rule, and not to a part.
func (f *finder) isHelper(fr *frame, t *ast.Term) bool {
	defs := f.source.FindDefinitions(fr.clause, fr.locals, t, nil)
	return len(defs) > 0 && !slices.ContainsFunc(defs, func(d engine.Definition) bool { return d.Within })
}

// walkReferences calls show for the references, variables and calls in a term from the outside in, as
// long as show returns true. It leaves out those in comprehensions, which have no single value.
func walkReferences(t *ast.Term, show func(*ast.Term) bool) {
	switch v := t.Value.(type) {
	case ast.Var:
		show(t)
	case ast.Ref:
		if show(t) {
			for _, x := range v[1:] {
				walkReferences(x, show)
			}
		}
	case ast.Call:
		if show(t) {
			for _, x := range v[1:] {
				walkReferences(x, show)
			}
		}
	case *ast.Array:
		v.Foreach(func(x *ast.Term) { walkReferences(x, show) })
	case ast.Set:
		v.Foreach(func(x *ast.Term) { walkReferences(x, show) })
	case ast.Object:
		v.Foreach(func(k, x *ast.Term) { walkReferences(k, show); walkReferences(x, show) })
	case *ast.TemplateString:
		for _, part := range v.Parts {
			if x, ok := part.(*ast.Expr); ok {
				for _, t := range termsOf(x) {
					walkReferences(t, show)
				}
			}
		}
	}
}

// termsOf returns the operands of a condition, or its only term.
func termsOf(x *ast.Expr) []*ast.Term {
	switch terms := x.Terms.(type) {
	case *ast.Term:
		return []*ast.Term{terms}
	case []*ast.Term:
		return terms[1:]
	case *ast.Every:
		return []*ast.Term{terms.Domain}
	case *ast.SomeDecl:
		if call, ok := terms.Symbols[0].Value.(ast.Call); ok {
			return call[len(call)-1:]
		}
	}
	return nil
}

// bodyWithout returns the expressions of all lines except one.
func bodyWithout(lines []*condition, but *condition) ast.Body {
	var out ast.Body
	for _, l := range lines {
		if l != but {
			out = append(out, l.expr)
		}
	}
	return out
}

// trySolve returns an error if conditions cannot be evaluated by themselves, and nil values if they
// are not true.
func (f *finder) trySolve(fr *frame, conditions ast.Body) (map[ast.Var]ast.Value, error) {
	all := slices.Concat(fr.before, conditions, fr.after)
	key := question{fr.clause.SourceModule(), all.String()}
	a, ok := f.known[key]
	if !ok {
		a.values, a.err = f.source.SolveConditions(f.ctx, fr.clause, all, f.input)
		f.known[key] = a
	}
	return a.values, a.err
}

// solveConditions returns nil if conditions are not true, or cannot be evaluated by themselves.
func (f *finder) solveConditions(fr *frame, conditions ast.Body) map[ast.Var]ast.Value {
	got, err := f.trySolve(fr, conditions)
	if err != nil {
		return nil
	}
	return got
}

func (f *finder) isClauseTrue(fr *frame) bool {
	return f.solveConditions(fr, bodyWithout(fr.lines, nil)) != nil
}

// findMissingCondition returns the only line that makes a clause not true; nil if there is none, or
// more than one, or if the others cannot be evaluated without it.
func (f *finder) findMissingCondition(fr *frame) *condition {
	of := func(head bool) (out []*condition) {
		for _, l := range fr.lines {
			if head == (l.kind == heads) {
				out = append(out, l)
			}
		}
		return out
	}
	candidates := of(false)
	if f.solveConditions(fr, bodyWithout(candidates, nil)) != nil {
		candidates = of(true)
	}
	for _, l := range candidates {
		if rest, ok := allBut(fr.lines, l); ok && f.solveConditions(fr, rest) != nil {
			return l
		}
	}
	return nil
}

// allBut leaves out a line, and the head's references to the names that it assigns; false if other
// lines need these names too.
func allBut(lines []*condition, but *condition) (ast.Body, bool) {
	var out ast.Body
	gone := ast.NewVarSet()
	for _, t := range engine.DeclaredTerms(but.expr) {
		gone.Update(t.Vars())
	}
	for _, l := range lines {
		if l == but {
			continue
		}
		if but.kind == names && len(gone.Intersect(l.expr.Vars(ast.VarVisitorParams{}))) > 0 {
			if l.kind == heads {
				continue
			}
			return nil, false
		}
		out = append(out, l.expr)
	}
	return out, true
}

// holdingConditions returns the conditions of a clause that is true. It leaves out those that only
// assign a name, unless helpers decide whether there is a value.
func (f *finder) holdingConditions(fr *frame, deep int) []Condition {
	var out []Condition
	for _, l := range fr.lines {
		if f.ctx.Err() != nil {
			break
		}
		if deep == shallow && (l.kind == names || l.kind == heads) {
			continue
		}
		c := f.describeCondition(fr, l, bodyWithout(fr.lines, nil), true)
		f.addHelpers(&c, fr, l, bodyWithout(fr.lines, nil), true, deep)
		if l.kind == asks || hasHelperConditions(c) || l.kind == values && (c.Distance != nil || len(fr.lines) == 1) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, byDistance)
	return out
}

// lackingConditions returns the only condition that a clause misses; none if it only assigns a name,
// and no helper decides whether there is a value.
func (f *finder) lackingConditions(fr *frame, l *condition, deep int) []Condition {
	if deep == shallow && l.kind == names {
		return nil
	}
	rest, _ := allBut(fr.lines, l)
	c := f.describeCondition(fr, l, rest, false)
	f.addHelpers(&c, fr, l, rest, false, deep)
	if l.kind == names && !hasHelperConditions(c) {
		return nil
	}
	return []Condition{c}
}

// hasHelperConditions reports whether conditions of helpers decide about a condition.
func hasHelperConditions(c Condition) bool {
	return slices.ContainsFunc(c.Helpers, func(h Helper) bool { return len(h.Conditions) > 0 })
}
