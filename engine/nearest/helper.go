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
	// maxValue is how many nodes an argument may have that is not a fact, since it
	// becomes a part of each question about the helper.
	maxValue = 200
)

// reference is what a condition says of a helper.
type reference struct {
	term *ast.Term
	args []*ast.Term
	// whole is true when the condition is the reference, and not something about
	// its value.
	whole bool
	// name is what the author wrote.
	name string
	// of is what the condition says that something is an element of, if it does.
	of *ast.Term
	// about is a variable that may be an element of the helper.
	about *ast.Term
}

// addHelpers adds to a condition what decides about the helpers that it refers to.
func (f *finder) addHelpers(c *Condition, fr *frame, l *condition, others ast.Body, holds bool, deep int) {
	if deep == shallow || hasWithModifier(l.expr) {
		return
	}
	x, negated := stripNot(l.expr)
	if _, not := x.Terms.(*ast.Not); not {
		negated = !negated
	}
	d := decider{finder: f, from: fr, others: others, so: holds != negated, deep: deep - 1}
	// What has no name, or one that nothing is asked about, has only to be there.
	d.exists = l.kind == heads || l.kind == names && !fr.namesAreUsed(l)
	c.Helpers = d.alternativeHelpers(x)
	elements := map[string]bool{}
	for _, ref := range findReferences(x) {
		if f.ctx.Err() != nil {
			return
		}
		defs := f.source.FindDefinitions(fr.clause, fr.locals, ref.term, ref.args)
		if ref.of != nil {
			// Of a set that rules make, an element has the rule's conditions.
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

// findReferences are those that a condition may make to helpers.
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

// formatCall is a call as it was written.
func formatCall(terms []*ast.Term) string {
	args := make([]string, 0, len(terms))
	for _, t := range terms[1:] {
		args = append(args, textOf(t))
	}
	return fmt.Sprintf("%s(%s)", textOf(terms[0]), strings.Join(args, ", "))
}

// alternativeBodies are the bodies of a condition that has some, which decide about it
// as the definitions of a helper would.
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
