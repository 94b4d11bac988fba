// SPDX-License-Identifier: Apache-2.0

package implication

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// definedParts returns the references and calls in a term without which it has no value.
func definedParts(t *ast.Term) []*ast.Term {
	var out []*ast.Term
	var visit func(*ast.Term)
	visit = func(t *ast.Term) {
		switch x := t.Value.(type) {
		case ast.Ref:
			if isSubject(t) {
				out = append(out, t)
			}
			for _, step := range x {
				visit(step)
			}
		case ast.Call:
			if call, ok := singleValued(x); ok {
				out = append(out, call)
			}
			for _, arg := range x[1:] {
				visit(arg)
			}
		case *ast.Array:
			x.Foreach(visit)
		case ast.Set:
			x.Foreach(visit)
		case ast.Object:
			x.Foreach(func(k, v *ast.Term) { visit(k); visit(v) })
		}
	}
	visit(t)
	return out
}

// isSubject reports whether a term has at most one value while its variables have theirs.
func isSubject(t *ast.Term) bool {
	single := true
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Call:
			_, ok := singleValued(x)
			single = single && ok
		case *ast.Expr:
			if call, ok := x.Terms.([]*ast.Term); ok {
				single = single && (comparisonOf(call[0].String()) != "" || isAnyOf(call[0].String(), ast.Assign.Name, ast.Equality.Name) || isDeterministic(call))
			}
			single = single && len(x.With) == 0
		}
		return !single
	}).Walk(t)
	return single
}

func isAnyOf(name string, names ...string) bool { return slices.Contains(names, name) }

// isDeterministic reports whether a function has the same result each time. Functions of policies have.
func isDeterministic(call []*ast.Term) bool {
	b, ok := ast.BuiltinMap[call[0].String()]
	return !ok || !b.Nondeterministic
}

// singleValued returns a call as a term, and whether it has at most one value.
func singleValued(call []*ast.Term) (*ast.Term, bool) {
	t := ast.NewTerm(ast.Call(call))
	name := call[0].String()
	b, ok := ast.BuiltinMap[name]
	if !ok {
		ref, ok := call[0].Value.(ast.Ref)
		return t, ok && ref.HasPrefix(ast.DefaultRootRef)
	}
	return t, !b.Nondeterministic && !b.Relation && b.Name != ast.Assign.Name && b.Name != ast.Equality.Name &&
		!isAnyOf(name, "print", "internal.print") && b.Decl.Arity() == len(call)-1
}

// valuesOfTerm returns the values that a term may have by its form.
func valuesOfTerm(t *ast.Term) span {
	out := anyValue()
	switch x := t.Value.(type) {
	case ast.Call:
		b, ok := ast.BuiltinMap[x[0].String()]
		if !ok {
			return out
		}
		switch b.Decl.Result().(type) {
		case types.Boolean:
			out.kinds = boolean
		case types.Number:
			out.kinds = number
		case types.String:
			out.kinds = text
		}
		if b.Name == ast.Count.Name {
			out.kinds, out.whole = number, true
			out.low = &limit{value: ast.Number("0")}
		}
	case *ast.ArrayComprehension, *ast.Array:
		out.kinds = array
	case *ast.SetComprehension, ast.Set:
		out.kinds = set
	case *ast.ObjectComprehension, ast.Object:
		out.kinds = object
	}
	return out
}

// elementsOf returns the values of a constant collection.
func elementsOf(t *ast.Term) []ast.Value {
	var out []ast.Value
	switch x := t.Value.(type) {
	case *ast.Array:
		x.Foreach(func(e *ast.Term) { out = append(out, e.Value) })
	case ast.Set:
		x.Foreach(func(e *ast.Term) { out = append(out, e.Value) })
	case ast.Object:
		x.Foreach(func(_, e *ast.Term) { out = append(out, e.Value) })
	}
	return out
}

// keysOf returns the keys of a constant collection.
func keysOf(t *ast.Term) []ast.Value {
	var out []ast.Value
	switch x := t.Value.(type) {
	case *ast.Array:
		for i := range x.Len() {
			out = append(out, ast.IntNumberTerm(i).Value)
		}
	case ast.Set:
		x.Foreach(func(e *ast.Term) { out = append(out, e.Value) })
	case ast.Object:
		x.Foreach(func(k, _ *ast.Term) { out = append(out, k.Value) })
	}
	return out
}

// isUnderstood reports whether a condition is evaluated on the facts of the decision, and is no
// declaration or output.
func isUnderstood(x *ast.Expr) bool {
	if len(x.With) > 0 {
		return false
	}
	if call, ok := x.Terms.([]*ast.Term); ok && isAnyOf(call[0].String(), "print", "internal.print") {
		return false
	}
	nested := false
	ast.WalkWiths(x, func(*ast.With) bool { nested = true; return true })
	return !nested
}
