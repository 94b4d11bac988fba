// SPDX-License-Identifier: Apache-2.0

package module

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bounded"
)

// boundValues makes the rules of users measure each value that they make from others, where they make
// it. So no value that they compare, unify, look up or return is beyond the limits, even if OPA itself
// does that and not a built-in function.
//
// It is the last stage of compilation, so that it does not change types, indices or dependencies of
// rules.
var boundValues = ast.CompilerStageDefinition{Name: "BoundValues", MetricName: "compile_stage_bound_values", Stage: func(c *ast.Compiler) *ast.Error {
	for _, m := range c.Modules {
		if !ofUsers(m) {
			continue
		}
		b := bounding{compiler: c}
		for _, r := range m.Rules {
			for ; r != nil; r = r.Else {
				b.rewriteRule(r)
			}
		}
	}
	return nil
}}

// ofUsers reports whether a package extends or replaces the built-in policies.
func ofUsers(m *ast.Module) bool {
	if len(m.Package.Path) < 2 {
		return false
	}
	root, _ := m.Package.Path[1].Value.(ast.String)
	return root == "extend" || root == "override"
}

// bounding rewrites rules of one module.
type bounding struct {
	compiler *ast.Compiler
	made     int // variables
}

func (b *bounding) rewriteRule(r *ast.Rule) {
	bound := ast.ReservedVars.Copy()
	for _, arg := range r.Head.Args {
		bound.Update(arg.Vars())
	}
	b.rewriteHeadedBody(&r.Body, bound, &r.Head.Key, &r.Head.Value)
}

// rewriteHeadedBody rewrites a body, and its head terms.
func (b *bounding) rewriteHeadedBody(body *ast.Body, outer ast.VarSet, head ...**ast.Term) {
	bound := outer.Copy()
	out := b.rewriteBody(*body, bound)
	for _, t := range head {
		*t = b.hoistTerm(*t, bound, &out)
	}
	*body = renumberExprs(out)
}

// renumberExprs sets the indices of expressions.
func renumberExprs(body ast.Body) ast.Body {
	for i, x := range body {
		x.Index = i
	}
	return body
}

// rewriteBody rewrites conditions, and adds to the variables that are bound after them.
func (b *bounding) rewriteBody(body ast.Body, bound ast.VarSet) ast.Body {
	out := make(ast.Body, 0, len(body))
	for _, x := range body {
		b.rewriteNested(x, bound)
		for _, w := range x.With {
			w.Value = b.hoistTerm(w.Value, bound, &out)
		}
		after := ast.OutputVarsFromExpr(b.compiler, x, bound)
		terms, isCall := x.Terms.([]*ast.Term)
		switch {
		case !isCall:
			out = append(out, x)
		case x.IsEquality():
			out = append(out, x)
			if b.makesValue(terms[2], bound) {
				x.Terms = append([]*ast.Term{ast.NewTerm(bounded.Value.Ref()), terms[2]}, terms[1])
			} else if v, ok := terms[1].Value.(ast.Var); ok && b.isGatheredValue(terms[2]) {
				out = append(out, b.newMeasureExpr(ast.NewTerm(v), b.newVariable(), x.Location))
			}
		default:
			if bounded.MeasuresOperands(x.Operator().String()) {
				out = append(out, x)
				break
			}
			for i := range x.Operands() {
				terms[i+1] = b.hoistTerm(terms[i+1], bound, &out)
			}
			out = append(out, x)
		}
		bound.Update(after)
	}
	return renumberExprs(out)
}

// rewriteNested rewrites the conditions inside an expression.
func (b *bounding) rewriteNested(x *ast.Expr, bound ast.VarSet) {
	switch t := x.Terms.(type) {
	case *ast.Not:
		t.Body = b.rewriteBody(t.Body, bound.Copy())
		return
	case *ast.LogicalAnd:
		left := bound.Copy()
		t.Lhs = b.rewriteBody(t.Lhs, left)
		t.Rhs = b.rewriteBody(t.Rhs, left)
		return
	case *ast.LogicalOr:
		t.Lhs = b.rewriteBody(t.Lhs, bound.Copy())
		t.Rhs = b.rewriteBody(t.Rhs, bound.Copy())
		return
	case *ast.Every:
		inner := bound.Copy()
		for _, name := range []*ast.Term{t.Key, t.Value} {
			if name != nil {
				inner.Update(name.Vars())
			}
		}
		t.Body = b.rewriteBody(t.Body, inner)
		return
	}
	ast.WalkTerms(x, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case *ast.ArrayComprehension:
			b.rewriteHeadedBody(&v.Body, bound, &v.Term)
		case *ast.SetComprehension:
			b.rewriteHeadedBody(&v.Body, bound, &v.Term)
		case *ast.ObjectComprehension:
			b.rewriteHeadedBody(&v.Body, bound, &v.Key, &v.Value)
		default:
			return false
		}
		return true
	})
}

// makesValue reports whether a term makes a value from variables that are all bound.
func (b *bounding) makesValue(t *ast.Term, bound ast.VarSet) bool {
	if t == nil || t.IsGround() {
		return false
	}
	switch t.Value.(type) {
	case *ast.Array, ast.Object, ast.Set:
		return len(t.Vars().Diff(bound)) == 0
	}
	return false
}

// isGatheredValue reports whether a term is a value whose parts were made one by one, such as that of
// a comprehension or of a rule with several definitions.
func (b *bounding) isGatheredValue(t *ast.Term) bool {
	if ast.IsComprehension(t.Value) {
		return true
	}
	ref, ok := t.Value.(ast.Ref)
	if !ok || !ref.HasPrefix(ast.DefaultRootRef) {
		return false
	}
	rules := b.compiler.GetRules(ref)
	for _, r := range rules {
		if r.Head.RuleKind() == ast.MultiValue || !r.Ref().GroundPrefix().Equal(ref) {
			return true
		}
	}
	return false
}

// hoistTerm returns the term itself, or a variable for the value that it makes, which an additional
// expression measures.
func (b *bounding) hoistTerm(t *ast.Term, bound ast.VarSet, out *ast.Body) *ast.Term {
	if !b.makesValue(t, bound) {
		return t
	}
	name := b.newVariable()
	*out = append(*out, b.newMeasureExpr(t, name, t.Location))
	bound.Add(name.Value.(ast.Var))
	return name
}

// newVariable returns a variable that no policy can name.
func (b *bounding) newVariable() *ast.Term {
	b.made++
	return ast.VarTerm(fmt.Sprintf("__bounded%d__", b.made))
}

func (b *bounding) newMeasureExpr(t, as *ast.Term, at *ast.Location) *ast.Expr {
	x := bounded.Value.Expr(t, as)
	x.Location = at
	return x
}
