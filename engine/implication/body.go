// SPDX-License-Identifier: Apache-2.0

package implication

import (
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Inputs are the types of the inputs with which a rule is evaluated, one for each decision point. A nil type is
// that of an input of which nothing is known.
type Inputs []reflect.Type

// Contradiction says why a rule is never true.
type Contradiction struct {
	// Conditions cannot be true together; if it is one, it cannot be true.
	Conditions []Condition
	// Missing are facts of theirs that no input has, or that no input has together.
	Missing []string
	// Fact is what they leave no value for, if it is one, and Type its kind in an input.
	Fact, Type string
}

// FindContradiction finds conditions of a rule that are true together in no input. It reports false if it knows
// of none.
func (b *Body) FindContradiction(inputs Inputs) (Contradiction, bool) {
	all := make([]int, len(b.Conditions))
	for i := range all {
		all[i] = i
	}
	if !b.isImpossible(inputs, all) {
		return Contradiction{}, false
	}
	smallest := b.smallestSet(all, func(use []int) bool { return b.isImpossible(inputs, use) })
	var out Contradiction
	missing := true
	for _, i := range smallest {
		out.Conditions = append(out.Conditions, b.Conditions[i])
	}
	for _, in := range inputs {
		s := b.newStore(in, smallest)
		s.isContradiction()
		if missing = missing && s.why.missing; missing && !slices.Contains(out.Missing, s.why.term.String()) {
			out.Missing = append(out.Missing, s.why.term.String())
		}
		if s.why.term != nil && !s.why.missing && out.Fact == "" {
			out.Fact, out.Type = textOf(s.why.term), s.why.shape.describeType()
		}
	}
	if !missing {
		out.Missing = nil
	}
	slices.Sort(out.Missing)
	return out, true
}

// describeType names what a value of a shape is, as JSON does.
func (s shape) describeType() string {
	if s.typ == nil {
		return ""
	}
	switch s.values.kinds &^ null {
	case boolean:
		return "boolean"
	case number:
		if s.values.whole {
			return "integer"
		}
		return "number"
	case text:
		return "string"
	case array:
		return "array"
	case object:
		return "object"
	}
	return ""
}

// maxPaired bounds the conditions of which each two are looked at.
const maxPaired = 40

// smallestSet returns as few of some conditions as is known for which something is so, as it is for all of them.
func (b *Body) smallestSet(all []int, isSo func([]int) bool) []int {
	if isSo(nil) {
		return nil
	}
	for _, i := range all {
		if isSo([]int{i}) {
			return []int{i}
		}
	}
	pairs := all
	if len(pairs) > maxPaired {
		pairs = nil
	}
	for n, i := range pairs {
		for _, j := range pairs[:n] {
			if isSo([]int{j, i}) {
				return []int{j, i}
			}
		}
	}
	left := slices.Clone(all)
	for _, i := range all {
		without := slices.DeleteFunc(slices.Clone(left), func(j int) bool { return i == j })
		if isSo(without) {
			left = without
		}
	}
	return left
}

func (b *Body) isImpossible(inputs Inputs, use []int) bool {
	for _, in := range inputs {
		if !b.newStore(in, use).isContradiction() {
			return false
		}
	}
	return len(inputs) > 0
}

// newStore returns what is known while some conditions are true.
func (b *Body) newStore(in reflect.Type, use []int) *store {
	if b.reader.replaced {
		in = nil
	}
	s := newStore(in)
	for _, i := range use {
		c := b.Conditions[i]
		if c.expr != nil {
			s.assumeTrue(c.expr, b.reader, maxDepth)
		}
		for _, t := range c.terms {
			s.markThere(t)
		}
	}
	return s
}

// Redundancy is a condition that is true wherever others of its rule are.
type Redundancy struct {
	Condition Condition
	// By are the others; none if it is true of all inputs.
	By []Condition
}

// FindRedundancies finds conditions without which a rule would be true of the same inputs, with the same values
// of its variables, and would fail for no input for which it does not fail with them. All can be left out together.
func (b *Body) FindRedundancies(inputs Inputs) []Redundancy {
	var out []Redundancy
	gone := map[int]bool{}
	for i, c := range slices.Backward(b.Conditions) {
		if c.expr == nil || !c.asks || !b.bindsElsewhere(i, gone) {
			continue
		}
		premises := b.premisesOf(i, gone)
		isSo := func(use []int) bool { return b.isImplied(inputs, use, c.expr) }
		if b.isImpossible(inputs, premises) || !isSo(premises) {
			continue
		}
		gone[i] = true
		r := Redundancy{Condition: c}
		for _, j := range b.smallestSet(premises, isSo) {
			r.By = append(r.By, b.Conditions[j])
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	return out
}

// premisesOf returns the conditions that may be the reason that one is not needed: those before it, and those
// after it as far as nothing is evaluated on the way that may fail where the condition is false.
func (b *Body) premisesOf(i int, gone map[int]bool) []int {
	var out []int
	for j := range b.Conditions {
		if j > i && b.Conditions[j].risky {
			break
		}
		if j != i && !gone[j] {
			out = append(out, j)
		}
	}
	return out
}

func (b *Body) isImplied(inputs Inputs, premises []int, x *ast.Expr) bool {
	for _, in := range inputs {
		s := b.newStore(in, premises)
		s.assumeFalse(x, b.reader, maxDepth)
		if !s.isContradiction() {
			return false
		}
	}
	return len(inputs) > 0
}

// bindsElsewhere reports whether other conditions give all variables of one a value.
func (b *Body) bindsElsewhere(i int, gone map[int]bool) bool {
	bound := b.bound.Copy()
	for j, c := range b.Conditions {
		if j == i || gone[j] || c.expr == nil {
			continue
		}
		switch t := c.expr.Terms.(type) {
		case *ast.SomeDecl:
			for _, symbol := range t.Symbols {
				if call, ok := symbol.Value.(ast.Call); ok {
					bound.Update(variablesOf(ast.NewTerm(call)))
				}
			}
		case []*ast.Term:
			if c.expr.IsAssignment() {
				bound.Update(variablesOf(c.expr))
			}
		}
	}
	for v := range variablesOf(b.Conditions[i].expr) {
		if !bound.Contains(v) {
			return false
		}
	}
	return true
}

// variablesOf returns the variables in a condition or a term, without the input and without names of functions.
func variablesOf(x any) ast.VarSet {
	out := ast.NewVarSet()
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		var args []*ast.Term
		switch x := x.(type) {
		case ast.Var:
			if !x.Equal(ast.InputRootDocument.Value) && !x.Equal(ast.DefaultRootDocument.Value) {
				out.Add(x)
			}
			return false
		case ast.Call:
			args = x[1:]
		case *ast.Expr:
			terms, ok := x.Terms.([]*ast.Term)
			if !ok {
				return false
			}
			args = terms[1:]
		default:
			return false
		}
		for _, arg := range args {
			visitor.Walk(arg)
		}
		return true
	})
	visitor.Walk(x)
	return out
}

// onlyAsks reports whether a condition gives no variable a value, and asks about more than constants, which are
// settings of the policy.
func onlyAsks(x *ast.Expr) bool {
	switch t := x.Terms.(type) {
	case *ast.SomeDecl:
		return false
	case []*ast.Term:
		if isAnyOf(t[0].String(), ast.Assign.Name, ast.Equality.Name) {
			return false
		}
		if b, ok := ast.BuiltinMap[t[0].String()]; ok && b.Decl.Arity() != len(t)-1 {
			return false
		}
	}
	facts := false
	ast.WalkRefs(x, func(ref ast.Ref) bool {
		_, operator := ast.BuiltinMap[ref.String()]
		facts = facts || !operator
		return facts
	})
	return facts || len(variablesOf(x)) > 0
}

// mayFail reports whether the evaluation of a condition may fail, which is something else than that it is false.
func mayFail(x *ast.Expr) bool {
	found := false
	isSafe := func(name string) bool { return comparisonOf(name) != "" || name == ast.Member.Name }
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Call:
			found = found || !isSafe(x[0].String())
		case *ast.Expr:
			if call, ok := x.Terms.([]*ast.Term); ok {
				found = found || !isSafe(call[0].String()) && call[0].String() != ast.Assign.Name
			}
		case ast.Ref:
			found = found || x.HasPrefix(ast.DefaultRootRef)
		}
		return found
	}).Walk(x)
	return found
}
