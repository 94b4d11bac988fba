// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
)

const (
	// maxLooked is how many definitions of a helper are evaluated.
	maxLooked = 32
	// maxHelpers is how many definitions are shown below a condition.
	maxHelpers = 4
	// maxValue is how many nodes an argument that is no fact may have, since it becomes a part of each
	// query about the helper.
	maxValue = 200
)

// reference is a reference of a condition to a helper.
type reference struct {
	term *ast.Term
	args []*ast.Term
	// whole is true if the condition is the reference itself, and not something about its value.
	whole bool
	// name is the reference in the source.
	name string
	// of is the collection, if the condition says that something is an element of one.
	of *ast.Term
	// about is a variable that may be an element of the helper.
	about *ast.Term
}

// addHelpers adds to a condition the definitions that decide about the helpers that it refers to.
func (f *finder) addHelpers(c *Condition, fr *frame, l *condition, others ast.Body, holds bool, deep int) {
	if deep == shallow || hasWithModifier(l.expr) {
		return
	}
	x, negated := stripNot(l.expr)
	if _, not := x.Terms.(*ast.Not); not {
		negated = !negated
	}
	d := decider{finder: f, from: fr, others: others, so: holds != negated, deep: deep - 1}
	// A value without a name, or with a name that no condition uses, only has to exist.
	d.exists = l.kind == heads || l.kind == names && !fr.namesAreUsed(l)
	c.Helpers = d.alternativeHelpers(x)
	elements := map[string]bool{}
	for _, ref := range findReferences(x) {
		if f.ctx.Err() != nil {
			return
		}
		defs := f.source.FindDefinitions(fr.clause, fr.locals, ref.term, ref.args)
		if ref.of != nil {
			// An element of a set that rules make has the conditions of its rule.
			if slices.ContainsFunc(defs, func(d engine.Definition) bool {
				return d.Within || len(d.Ways[0].Head.Args) > 0 || d.Ways[0].Head.RuleKind() != ast.MultiValue
			}) {
				continue
			}
			elements[ref.of.String()] = len(defs) > 0
		} else if elements[ref.term.String()] {
			continue
		}
		if more := len(defs) - maxLooked; more > 0 {
			defs, c.More = defs[:maxLooked], c.More+more
		}
		c.Helpers = append(c.Helpers, d.decidingHelpers(ref, defs)...)
	}
	if more := len(c.Helpers) - maxHelpers; more > 0 {
		slices.SortStableFunc(c.Helpers, func(a, b Helper) int {
			return byDistance(Condition{Helpers: []Helper{a}}, Condition{Helpers: []Helper{b}})
		})
		c.Helpers, c.More = c.Helpers[:maxHelpers], c.More+more
	}
}

// findReferences returns the references of a condition that may be to helpers.
func findReferences(x *ast.Expr) []reference {
	var out []reference
	add := func(r reference) {
		if !slices.ContainsFunc(out, func(o reference) bool { return o.name == r.name }) {
			out = append(out, r)
		}
	}
	var about *ast.Term
	if named := engine.DeclaredTerms(x); len(named) > 0 {
		about = named[len(named)-1]
	}
	if terms, ok := x.Terms.([]*ast.Term); ok && !x.IsAssignment() && !x.IsEquality() {
		if x.Operator().String() == ast.Member.Name {
			ref, ok := terms[2].Value.(ast.Ref)
			if _, name := terms[2].Value.(ast.Var); name {
				ref, ok = ast.Ref{terms[2]}, true
			}
			if ok {
				add(reference{term: ast.NewTerm(ref.Append(terms[1])), whole: true, of: terms[2], name: textOf(x)})
			}
		} else {
			add(reference{term: terms[0], args: terms[1:], whole: true, name: formatCall(terms)})
		}
	}
	for _, t := range termsOf(x) {
		walkReferences(t, func(t *ast.Term) bool {
			if call, ok := t.Value.(ast.Call); ok {
				add(reference{term: call[0], args: call[1:], name: formatCall(call)})
			} else {
				add(reference{term: t, whole: x.Terms == any(t), name: textOf(t), about: about})
			}
			return true
		})
	}
	return out
}

// formatCall formats a call as in the source.
func formatCall(terms []*ast.Term) string {
	args := make([]string, 0, len(terms))
	for _, t := range terms[1:] {
		args = append(args, textOf(t))
	}
	return fmt.Sprintf("%s(%s)", textOf(terms[0]), strings.Join(args, ", "))
}

// alternativeBodies returns the bodies inside a condition, which decide about it like the definitions
// of a helper.
func alternativeBodies(x *ast.Expr) []ast.Body {
	switch t := x.Terms.(type) {
	case *ast.Not:
		return []ast.Body{t.Body}
	case *ast.LogicalAnd:
		return []ast.Body{slices.Concat(t.Lhs, t.Rhs)}
	case *ast.LogicalOr:
		var out []ast.Body
		for _, side := range []ast.Body{t.Lhs, t.Rhs} {
			if inner, ok := side[0].Terms.(*ast.LogicalOr); ok && len(side) == 1 {
				out = append(out, alternativeBodies(&ast.Expr{Terms: inner})...)
				continue
			}
			out = append(out, side)
		}
		return out
	}
	return nil
}
