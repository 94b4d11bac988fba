// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
)

// decider finds the definitions that decide about a condition.
type decider struct {
	*finder
	// from is the clause that has the condition, and others are conditions of it
	// that are true.
	from   *frame
	others ast.Body
	// so reports whether what the condition refers to is true.
	so   bool
	deep int
	// exists is true when a value matters only in so far as there is one.
	exists bool
}

// definitionBranch is a definition, or a part of one that has an else, for a call.
type definitionBranch struct {
	frame *frame
	name  string
	fires bool
	// never is true of one that gives the value false, and side of what is a part
	// of the condition and no definition.
	never, side bool
}

// decidingHelpers are the definitions that decide about a reference.
func (d *decider) decidingHelpers(ref reference, defs []engine.Definition) []Helper {
	whole := ref.whole && !slices.ContainsFunc(defs, func(d engine.Definition) bool { return d.Within })
	var all [][]definitionBranch
	for _, def := range defs {
		if def.Default {
			if d.exists {
				return nil
			}
			continue // it is what is left when the others are not true
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

// alternativeHelpers are those alternatives of a condition that decide about it.
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

// explainTruth tells what makes something true, or would. Where there is an else, the
// ways before the one that is true might take over.
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
					return nil // it is so whatever else is
				}
				out = append(out, h)
			case !w.fires && !agrees && (i < first || !some):
				out, far = d.addUnmetBranch(w, out, far)
			}
		}
	}
	return orFar(out, far)
}

// explainValue tells what gives something its value, or would.
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
			return nil // there is something whatever else is
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

// addUnmetBranch adds a way that is not true to those that one condition keeps from it, or
// else to those that are further away.
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

// orFar are ways that are near, or else the first one of those that are not.
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

// evaluateBranch is false of a definition that is not about the call, or that cannot be asked.
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

// bindDefinition makes a definition one for what the clause that refers to it says. An
// element that nothing is known of is any one.
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

// resolveTerm is what a term of the clause is to others: a fact, or its value.
func (d *decider) resolveTerm(t *ast.Term) *ast.Term {
	if fact := d.from.factPath(t); fact != nil {
		return ast.NewTerm(fact)
	}
	return d.constantTerm(d.from, t, d.others)
}

// constantTerm is the value of a term; nil if it has none, if nothing binds it, or if
// it is too large to be a part of questions.
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
