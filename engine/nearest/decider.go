// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
)

// decider finds the definitions of helpers that decide whether a condition is true.
type decider struct {
	*finder
	// from is the clause that has the condition, and others are conditions of it
	// that are true.
	from   *frame
	others ast.Body
	// so reports whether what the condition refers to is true.
	so   bool
	deep int
	// exists is true if it only matters that there is a value.
	exists bool
}

// definitionBranch is a definition, or one branch of a definition with an else, for a call.
type definitionBranch struct {
	frame *frame
	name  string
	fires bool
	// never is true for a branch with the value false, and side for a part of the condition itself that is
	// no definition.
	never, side bool
}

// decidingHelpers returns the definitions that decide about a reference.
func (d *decider) decidingHelpers(ref reference, defs []engine.Definition) []Helper {
	whole := ref.whole && !slices.ContainsFunc(defs, func(d engine.Definition) bool { return d.Within })
	var all [][]definitionBranch
	for _, def := range defs {
		if def.Default {
			if d.exists {
				return nil
			}
			continue // a default applies if no other definition is true
		}
		var ways []definitionBranch
		for _, c := range def.Ways {
			if w, ok := d.evaluateBranch(ref, def, c, whole); ok {
				ways = append(ways, w)
			}
		}
		all = append(all, ways)
	}
	if whole {
		return d.explainTruth(all)
	}
	return d.explainValue(all)
}

// alternativeHelpers returns the alternatives inside a condition that decide about it.
func (d *decider) alternativeHelpers(x *ast.Expr) []Helper {
	var all [][]definitionBranch
	for _, side := range alternativeBodies(x) {
		fr := newFrame(engine.Clause{Head: &ast.Head{}, Conditions: side}, d.from.paths)
		texts := make([]string, len(fr.lines))
		for i, l := range fr.lines {
			texts[i] = l.text
		}
		fr.clause, fr.locals, fr.after = d.from.clause, d.from.locals, d.from.after
		fr.before = slices.Concat(d.from.before, d.others)
		all = append(all, []definitionBranch{{frame: fr, name: truncateText(strings.Join(texts, "; ")), fires: d.isClauseTrue(fr), side: true}})
	}
	return d.explainTruth(all)
}

// explainTruth returns the branches that make a reference true, or would make it true. With an else,
// branches before the one that is true might become true instead.
func (d *decider) explainTruth(all [][]definitionBranch) []Helper {
	isTrue := func(w definitionBranch) bool { return w.fires }
	some := slices.ContainsFunc(all, func(ways []definitionBranch) bool { return slices.ContainsFunc(ways, isTrue) })
	var out, far []Helper
	for _, ways := range all {
		first := slices.IndexFunc(ways, isTrue)
		for i, w := range ways {
			agrees := w.never != d.so
			switch {
			case w.fires && agrees:
				h := w.newHelper(true)
				if h.Conditions = d.holdingConditions(w.frame, d.deep); len(h.Conditions) == 0 {
					return nil // it does not depend on conditions
				}
				out = append(out, h)
			case !w.fires && !agrees && (i < first || !some):
				out, far = d.addUnmetBranch(w, out, far)
			}
		}
	}
	return orFar(out, far)
}

// explainValue returns the branches that give a reference its value, or would.
func (d *decider) explainValue(all [][]definitionBranch) []Helper {
	var out, far []Helper
	fires := false
	for _, ways := range all {
		i := slices.IndexFunc(ways, func(w definitionBranch) bool { return w.fires })
		if i < 0 {
			continue
		}
		fires = true
		w := ways[i]
		h := w.newHelper(true)
		h.Conditions = d.holdingConditions(w.frame, d.deep)
		switch v := w.frame.clause.Head.Value; {
		case len(h.Conditions) == 0 && (d.exists || v == nil):
			return nil // there always is a value
		case !d.exists && v != nil && !v.Equal(ast.BooleanTerm(true)):
			h.Text = textOf(v)
			h.Why = d.describeFacts(w.frame, ast.NewExpr(v), bodyWithout(w.frame.lines, nil))
		}
		if len(h.Conditions) > 0 || h.Why != "" {
			out = append(out, h)
		}
	}
	if fires {
		return out
	}
	for _, w := range slices.Concat(all...) {
		out, far = d.addUnmetBranch(w, out, far)
	}
	return orFar(out, far)
}

// addUnmetBranch adds a branch that is not true to near if it misses a single condition, and otherwise
// to far.
func (d *decider) addUnmetBranch(w definitionBranch, near, far []Helper) (_, _ []Helper) {
	h := w.newHelper(false)
	if l := d.findMissingCondition(w.frame); l != nil {
		if h.Conditions = d.lackingConditions(w.frame, l, d.deep); len(h.Conditions) > 0 {
			return append(near, h), far
		}
	}
	h.Why = "no single condition of it would do"
	return near, append(far, h)
}

// orFar returns the near branches or, if there are none, the first of the far ones.
func orFar(near, far []Helper) []Helper {
	if len(near) == 0 && len(far) > 0 {
		return far[:1]
	}
	return near
}

func (w definitionBranch) newHelper(holds bool) Helper {
	h := Helper{Name: w.name, Holds: holds}
	if w.never {
		h.Text = ast.Boolean(false).String()
	}
	if w.side {
		return h
	}
	c := w.frame.clause
	h.Bundle, h.Place = c.Rule.Bundle, c.Rule.Place
	if c.Own {
		h.Rule = c.Rule.ID
	}
	return h
}

// evaluateBranch evaluates a definition for a call. It returns false if the definition does not match the call,
// or cannot be evaluated.
func (d *decider) evaluateBranch(ref reference, def engine.Definition, c engine.Clause, whole bool) (definitionBranch, bool) {
	fr := newFrame(c, nil)
	w := definitionBranch{frame: fr, name: ref.name}
	if !d.bindDefinition(fr, def.Bound) {
		return w, false
	}
	value := c.Head.Value
	switch {
	case value == nil:
		d.addHeadReferences(fr, c.Head.Key)
	case !whole:
		d.addHeadReferences(fr, value)
	case value.Equal(ast.BooleanTerm(false)):
		w.never = true
	case !ast.IsConstant(value.Value):
		x := ast.NewExpr(value)
		if call, ok := value.Value.(ast.Call); ok {
			x = ast.NewExpr([]*ast.Term(call))
		}
		fr.lines = append(fr.lines, &condition{expr: x, text: textOf(value), kind: values})
	}
	if value == nil && !whole && len(fr.after) == 0 && ref.about != nil {
		if element := d.constantTerm(d.from, ref.about, d.others); element != nil {
			fr.after = ast.NewBody(ast.Equality.Expr(c.Head.Key, element))
			if w.fires = d.isClauseTrue(fr); w.fires {
				w.name += " contains " + formatValue(element.Value)
				return w, true
			}
			fr.after = nil
		}
	}
	got, err := d.trySolve(fr, bodyWithout(fr.lines, nil))
	w.fires = got != nil
	return w, err == nil
}

// bindDefinition binds the arguments of a definition to those of the call. An element that is not
// known may be any.
func (d *decider) bindDefinition(fr *frame, bound []engine.Binding) bool {
	declared := &ast.SomeDecl{}
	for _, b := range bound {
		there := d.resolveTerm(b.There)
		if there == nil {
			if b.Argument {
				return false
			}
			continue
		}
		if v, ok := b.Here.Value.(ast.Var); ok && v.IsWildcard() {
			continue
		}
		same := ast.Equality.Expr(b.Here, there)
		if !b.Argument {
			fr.after = append(fr.after, same)
			continue
		}
		ast.WalkVars(b.Here, func(v ast.Var) bool {
			if name := ast.NewTerm(v); !v.IsWildcard() && !slices.ContainsFunc(declared.Symbols, name.Equal) {
				declared.Symbols = append(declared.Symbols, name)
			}
			return false
		})
		fr.before = append(fr.before, same)
		fr.bindFactPath(b.Here, there)
	}
	if len(declared.Symbols) > 0 {
		fr.before = slices.Insert(fr.before, 0, ast.NewExpr(declared))
	}
	return len(fr.before) == 0 || d.solveConditions(&frame{clause: fr.clause}, fr.before) != nil
}

// resolveTerm resolves a term of the clause to a fact, or to its value.
func (d *decider) resolveTerm(t *ast.Term) *ast.Term {
	if fact := d.from.factPath(t); fact != nil {
		return ast.NewTerm(fact)
	}
	return d.constantTerm(d.from, t, d.others)
}

// constantTerm returns the value of a term; nil if it has none, if nothing binds it, or if it is too
// large to be a part of queries.
func (f *finder) constantTerm(fr *frame, t *ast.Term, others ast.Body) *ast.Term {
	if ast.IsConstant(t.Value) {
		return t
	}
	if v, ok := t.Value.(ast.Var); ok && v.IsWildcard() {
		return nil
	}
	got := f.solveConditions(fr, append(slices.Clone(others), ast.Equality.Expr(ast.VarTerm(left), t)))
	if got[left] == nil || !isSmallValue(got[left]) {
		return nil
	}
	return ast.NewTerm(got[left])
}

// isSmallValue reports whether a value has few nodes.
func isSmallValue(v ast.Value) bool {
	nodes := 0
	ast.WalkTerms(ast.NewTerm(v), func(*ast.Term) bool {
		nodes++
		return nodes > maxValue
	})
	return nodes <= maxValue
}
