// SPDX-License-Identifier: Apache-2.0

package implication

import "github.com/open-policy-agent/opa/v1/ast"

// comparisonOf returns the comparison that an operator makes; empty if it makes none. The operators of
// comparisons are distinct functions in Rego.
func comparisonOf(name string) string {
	return map[string]string{"equal": "==", "neq": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}[name]
}

func isConstant(t *ast.Term) bool {
	if _, text := t.Value.(*ast.TemplateString); text {
		return false
	}
	constant := ast.IsConstant(t.Value)
	if constant && kindOf(t.Value)&composite != 0 {
		ast.WalkTerms(t, func(t *ast.Term) bool {
			_, text := t.Value.(*ast.TemplateString)
			constant = constant && !text
			return !constant
		})
	}
	return constant && kindOf(t.Value) != 0
}

// negatedExpr returns what a condition negates; nil if it negates nothing, or several conditions at once.
func negatedExpr(x *ast.Expr) *ast.Expr {
	if not, ok := x.Terms.(*ast.Not); ok && !x.Negated {
		if len(not.Body) == 1 {
			return not.Body[0]
		}
		return nil
	}
	if _, several := x.Terms.(*ast.Not); x.Negated && !several {
		return x.Complement()
	}
	return nil
}

// assumeTrue notes what follows from a condition that is true.
func (s *store) assumeTrue(x *ast.Expr, r *Reader, depth int) {
	if s.steps++; s.steps > maxSteps || !isUnderstood(x) {
		return
	}
	if inner := negatedExpr(x); inner != nil {
		s.assumeFalse(inner, r, depth)
		return
	}
	switch t := x.Terms.(type) {
	case *ast.Term:
		s.assumeTerm(t, r, depth)
	case []*ast.Term:
		s.assumeCall(x, t)
	case *ast.SomeDecl:
		s.assumeSome(t)
	case *ast.Every:
		s.assumeDefined(t.Domain)
		s.setOpaque(x.String(), true)
	default:
		s.setOpaque(x.String(), true)
	}
}

func (s *store) assumeTerm(t *ast.Term, r *Reader, depth int) {
	if isConstant(t) {
		s.broken = s.broken || t.Equal(ast.BooleanTerm(false))
		return
	}
	s.assumeDefined(t)
	s.markThere(t)
	s.knowTerm(t).values.intersectSpan(comparedSpan("!=", ast.Boolean(false), true))
	if depth <= 0 {
		return
	}
	if all := r.helperBodies(t); len(all) == 1 {
		for _, x := range all[0] {
			s.assumeTrue(x, r, depth-1)
		}
	}
}

func (s *store) assumeCall(x *ast.Expr, t []*ast.Term) {
	if x.IsAssignment() {
		s.assumeDefined(t[2])
		if v, ok := t[1].Value.(ast.Var); ok && !isConstant(t[2]) {
			s.compareTerms(ast.NewTerm(v), "==", t[2], true)
		}
		return
	}
	name := t[0].String()
	for _, arg := range t[1:] {
		s.assumeDefined(arg)
	}
	if op := comparisonOf(name); op != "" && len(t) == 3 {
		s.compareTerms(t[1], op, t[2], true)
		return
	}
	if name == ast.Member.Name && len(t) == 3 && isConstant(t[2]) {
		s.restrictValues(t[1], elementsOf(t[2]), true)
		return
	}
	call, ok := singleValued(t)
	if !ok {
		return
	}
	s.markThere(call)
	s.knowTerm(call).values.intersectSpan(comparedSpan("!=", ast.Boolean(false), true))
}

func (s *store) assumeSome(t *ast.SomeDecl) {
	for _, symbol := range t.Symbols {
		call, ok := symbol.Value.(ast.Call)
		if !ok {
			continue
		}
		of := call[len(call)-1]
		s.assumeDefined(of)
		for i, v := range call[1 : len(call)-1] {
			name, ok := v.Value.(ast.Var)
			if !ok {
				continue
			}
			isKey := i == 0 && len(call) == 4
			s.domains[name] = domain{of, isKey}
			s.markThere(v)
			if isConstant(of) {
				values := elementsOf(of)
				if isKey {
					values = keysOf(of)
				}
				s.restrictValues(v, values, true)
			}
		}
	}
}

// assumeFalse notes what follows from a condition that is not true: it is false, or has no value.
func (s *store) assumeFalse(x *ast.Expr, r *Reader, depth int) {
	if s.steps++; s.steps > maxSteps || !isUnderstood(x) {
		return
	}
	if inner := negatedExpr(x); inner != nil {
		s.assumeTrue(inner, r, depth)
		return
	}
	switch t := x.Terms.(type) {
	case *ast.Term:
		s.assumeTermFalse(t, r, depth)
	case []*ast.Term:
		s.assumeCallFalse(x, t)
	case *ast.SomeDecl:
	default:
		s.setOpaque(x.String(), false)
	}
}

func (s *store) assumeTermFalse(t *ast.Term, r *Reader, depth int) {
	if isConstant(t) {
		s.broken = s.broken || !t.Equal(ast.BooleanTerm(false))
		return
	}
	if !isSubject(t) {
		return
	}
	s.knowTerm(t).values.intersectSpan(comparedSpan("==", ast.Boolean(false), true))
	if depth <= 0 {
		return
	}
	for _, body := range r.helperBodies(t) {
		if len(body) == 1 {
			s.assumeFalse(body[0], r, depth-1)
		}
	}
}

func (s *store) assumeCallFalse(x *ast.Expr, t []*ast.Term) {
	name := t[0].String()
	if x.IsAssignment() || name == ast.Equality.Name {
		return
	}
	if op := comparisonOf(name); op != "" && len(t) == 3 {
		s.compareTerms(t[1], op, t[2], false)
		return
	}
	if name == ast.Member.Name && len(t) == 3 && isConstant(t[2]) {
		s.restrictValues(t[1], elementsOf(t[2]), false)
		return
	}
	if call, ok := singleValued(t); ok {
		s.knowTerm(call).values.intersectSpan(comparedSpan("==", ast.Boolean(false), true))
	}
}

// compareTerms notes that a comparison is true, or that it is not.
func (s *store) compareTerms(a *ast.Term, op string, b *ast.Term, isTrue bool) {
	if isConstant(a) {
		a, op, b = b, turnedComparisons()[op], a
	}
	switch {
	case isConstant(a): // both are
		if orderOfValues(a.Value, b.Value)&orderOf(op, isTrue) == 0 {
			s.broken = true
		}
		return
	case !isSubject(a):
		return
	case isConstant(b):
		s.knowTerm(a).values.intersectSpan(comparedSpan(op, b.Value, isTrue))
		return
	case !isSubject(b):
		return
	case a.Equal(b):
		if orderOf(op, isTrue)&same == 0 {
			// A term that is not equal to itself has no value.
			s.knowTerm(a).values.kinds = 0
		}
		return
	}
	s.knowTerm(a)
	s.knowTerm(b)
	if len(s.orders) >= maxOrders {
		return
	}
	s.orders = append(s.orders, relation{a.String(), b.String(), orderOf(op, isTrue), isTrue})
}

func orderOfValues(a, b ast.Value) order {
	switch c := a.Compare(b); {
	case c < 0:
		return less
	case c > 0:
		return more
	}
	return same
}

// restrictValues notes that a term has one of some values, or, if it has one, none of them.
func (s *store) restrictValues(t *ast.Term, values []ast.Value, among bool) {
	if isConstant(t) {
		if hasValue(values, t.Value) != among {
			s.broken = true
		}
		return
	}
	if !isSubject(t) {
		return
	}
	only := anyValue()
	if among {
		only.only = append([]ast.Value{}, values...)
	} else {
		only.never = values
	}
	s.knowTerm(t).values.intersectSpan(only)
}

// assumeDefined notes that a term has a value, and so what it is made of. What a comprehension and a
// template are made of need not have one.
func (s *store) assumeDefined(t *ast.Term) {
	for _, part := range definedParts(t) {
		s.markThere(part)
	}
}
