// SPDX-License-Identifier: Apache-2.0

package implication

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// sized is a term, and about how many bytes it has as a text.
type sized struct {
	term *ast.Term
	size int
}

// nodeBytes is what a node of a term counts beside its text.
const nodeBytes = 4

func sizeOf(t *ast.Term) int {
	n := 0
	ast.WalkTerms(t, func(t *ast.Term) bool {
		n += textBytes(t.Value)
		return n > maxSize
	})
	return n
}

func textBytes(v ast.Value) int {
	switch v := v.(type) {
	case ast.String:
		return nodeBytes + len(v)
	case ast.Number:
		return nodeBytes + len(v)
	case ast.Var:
		return nodeBytes + len(v)
	}
	return nodeBytes
}

// resolveExpr returns a condition with its names resolved; false if nothing is known of it.
func (s *scope) resolveExpr(x *ast.Expr) (*ast.Expr, bool) {
	if s.mentionsUnclear(x) || !isUnderstood(x) {
		return nil, false
	}
	out := s.copyExpr(x)
	return out, out != nil && s.size <= maxSize
}

func (s *scope) resolveTerm(t *ast.Term) (*ast.Term, bool) {
	replaces := false
	ast.WalkWiths(t, func(*ast.With) bool { replaces = true; return true })
	if replaces || s.mentionsUnclear(t) {
		return nil, false
	}
	out := s.copyTerm(t)
	return out, out != nil && s.size <= maxSize
}

// copyExpr copies a condition with its names resolved; nil if it has a part that is not known.
func (s *scope) copyExpr(x *ast.Expr) *ast.Expr {
	out := *x
	var ok bool
	switch t := x.Terms.(type) {
	case *ast.Term:
		v := s.copyTerm(t)
		out.Terms, ok = v, v != nil
	case []*ast.Term:
		all := s.copyCall(t)
		out.Terms, ok = all, all != nil
	case *ast.SomeDecl:
		all := s.copyTerms(t.Symbols)
		out.Terms, ok = &ast.SomeDecl{Symbols: all}, all != nil
	case *ast.Every:
		every := &ast.Every{Value: s.copyTerm(t.Value), Domain: s.copyTerm(t.Domain), Body: s.copyBody(t.Body)}
		if t.Key != nil {
			every.Key = s.copyTerm(t.Key)
		}
		out.Terms, ok = every, every.Value != nil && every.Domain != nil && every.Body != nil && (t.Key == nil || every.Key != nil)
	case *ast.Not:
		body := s.copyBody(t.Body)
		out.Terms, ok = &ast.Not{Body: body, ExplicitBody: t.ExplicitBody}, body != nil
	case *ast.LogicalAnd:
		and := &ast.LogicalAnd{Lhs: s.copyBody(t.Lhs), Rhs: s.copyBody(t.Rhs), ExplicitLhs: t.ExplicitLhs, ExplicitRhs: t.ExplicitRhs}
		out.Terms, ok = and, and.Lhs != nil && and.Rhs != nil
	case *ast.LogicalOr:
		or := &ast.LogicalOr{Lhs: s.copyBody(t.Lhs), Rhs: s.copyBody(t.Rhs), ExplicitLhs: t.ExplicitLhs, ExplicitRhs: t.ExplicitRhs}
		out.Terms, ok = or, or.Lhs != nil && or.Rhs != nil
	default:
		ok = false
	}
	if !ok {
		return nil
	}
	return &out
}

func (s *scope) copyBody(b ast.Body) ast.Body {
	out := make(ast.Body, 0, len(b))
	for _, x := range b {
		resolved := s.copyExpr(x)
		if resolved == nil {
			return nil
		}
		out = append(out, resolved)
	}
	return out
}

// copyCall copies a call. A variable of the name of one of OPA's functions does not hide the function.
func (s *scope) copyCall(t []*ast.Term) []*ast.Term {
	out := s.copyTerms(t[1:])
	operator := t[0]
	if ref, ok := operator.Value.(ast.Ref); !ok || !s.isOperator(ref) {
		operator = s.copyTerm(operator)
	}
	if out == nil || operator == nil {
		return nil
	}
	return append([]*ast.Term{operator}, out...)
}

// isOperator reports whether a reference is to a function of OPA.
func (s *scope) isOperator(ref ast.Ref) bool {
	name, ok := ref[0].Value.(ast.Var)
	_, known := ast.BuiltinMap[ref.String()]
	return ok && known && s.rules[s.module.Package.Path.Append(ast.StringTerm(string(name))).String()] == nil
}

func (s *scope) copyTerms(all []*ast.Term) []*ast.Term {
	out := make([]*ast.Term, 0, len(all))
	for _, t := range all {
		resolved := s.copyTerm(t)
		if resolved == nil {
			return nil
		}
		out = append(out, resolved)
	}
	return out
}

// copyTerm copies a term with its names resolved; nil if the rule is too large, or if it has a part that is not known.
func (s *scope) copyTerm(t *ast.Term) *ast.Term {
	if s.size += textBytes(t.Value); s.size > maxSize {
		return nil
	}
	out := &ast.Term{Location: t.Location}
	switch x := t.Value.(type) {
	case ast.Null, ast.Boolean, ast.Number, ast.String:
		out.Value = x
	case ast.Var:
		out.Value = s.copyRef(ast.Ref{t})
	case ast.Ref:
		out.Value = s.copyRef(x)
	case ast.Call:
		if all := s.copyCall(x); all != nil {
			out.Value = ast.Call(all)
		}
	case *ast.Array:
		all := make([]*ast.Term, 0, x.Len())
		x.Foreach(func(e *ast.Term) { all = append(all, e) })
		if all = s.copyTerms(all); all != nil {
			out.Value = ast.NewArray(all...)
		}
	case ast.Set:
		if all := s.copyTerms(x.Slice()); all != nil {
			out.Value = ast.NewSet(all...)
		}
	case ast.Object:
		out.Value = s.copyObject(x)
	case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
		out.Value = s.copyComprehension(x)
	case *ast.TemplateString:
		out.Value = s.copyTemplate(x)
	}
	if out.Value == nil {
		return nil
	}
	return out
}

// copyComprehension copies a comprehension with its names resolved; nil if it has a part that is not known.
func (s *scope) copyComprehension(v ast.Value) ast.Value {
	switch x := v.(type) {
	case *ast.ArrayComprehension:
		if e, body := s.copyTerm(x.Term), s.copyBody(x.Body); e != nil && body != nil {
			return &ast.ArrayComprehension{Term: e, Body: body}
		}
	case *ast.SetComprehension:
		if e, body := s.copyTerm(x.Term), s.copyBody(x.Body); e != nil && body != nil {
			return &ast.SetComprehension{Term: e, Body: body}
		}
	case *ast.ObjectComprehension:
		if k, e, body := s.copyTerm(x.Key), s.copyTerm(x.Value), s.copyBody(x.Body); k != nil && e != nil && body != nil {
			return &ast.ObjectComprehension{Key: k, Value: e, Body: body}
		}
	}
	return nil
}

func (s *scope) copyObject(x ast.Object) ast.Value {
	pairs := make([][2]*ast.Term, 0, x.Len())
	known := true
	x.Foreach(func(k, v *ast.Term) {
		if !known {
			return
		}
		key, value := s.copyTerm(k), s.copyTerm(v)
		known = key != nil && value != nil
		pairs = append(pairs, [2]*ast.Term{key, value})
	})
	if !known {
		return nil
	}
	return ast.NewObject(pairs...)
}

func (s *scope) copyTemplate(x *ast.TemplateString) ast.Value {
	out := &ast.TemplateString{MultiLine: x.MultiLine, Parts: make([]ast.Node, 0, len(x.Parts))}
	for _, part := range x.Parts {
		switch p := part.(type) {
		case *ast.Expr:
			resolved := s.copyExpr(p)
			if resolved == nil {
				return nil
			}
			out.Parts = append(out.Parts, resolved)
		case *ast.Term:
			resolved := s.copyTerm(p)
			if resolved == nil {
				return nil
			}
			out.Parts = append(out.Parts, resolved)
		default:
			return nil
		}
	}
	return out
}

// copyRef returns a reference with its names resolved, or what it refers to.
func (s *scope) copyRef(x ast.Ref) ast.Value {
	var out ast.Ref
	switch head := x[0].Value.(type) {
	case ast.Var:
		switch to := s.nameOf(head); v := to.Value.(type) {
		case ast.Ref:
			out = v[:len(v):len(v)]
		default:
			out = ast.Ref{to}
		}
	default:
		to := s.copyTerm(x[0])
		if to == nil {
			return nil
		}
		out = ast.Ref{to}
	}
	for _, step := range x[1:] {
		resolved := s.copyTerm(step)
		if resolved == nil {
			return nil
		}
		out = append(out, resolved)
	}
	if v := s.inlineValue(out); v != nil {
		return v
	}
	if len(out) == 1 {
		return out[0].Value
	}
	return out
}

// nameOf returns what a variable stands for.
func (s *scope) nameOf(v ast.Var) *ast.Term {
	if v.Equal(ast.DefaultRootDocument.Value) || v.Equal(ast.InputRootDocument.Value) {
		return ast.NewTerm(v)
	}
	if to, ok := s.aliases[v]; ok {
		s.size += to.size
		return to.term
	}
	if s.locals.Contains(v) || v.IsWildcard() {
		return ast.NewTerm(ast.Var(s.prefix) + v)
	}
	for _, i := range s.module.Imports {
		if path, ok := i.Path.Value.(ast.Ref); ok && i.Name() == v && (path.HasPrefix(ast.DefaultRootRef) || path.HasPrefix(ast.InputRootRef)) {
			return ast.NewTerm(path)
		}
	}
	path := s.module.Package.Path.Append(ast.StringTerm(string(v)))
	if s.rules[path.String()] != nil {
		return ast.NewTerm(path)
	}
	return ast.NewTerm(ast.Var(s.prefix) + v)
}

// inlineValue returns the value of the rule that a reference is to, or the part that it selects of it; nil if
// there is no such rule, or if its value is not the same expression each time.
func (s *scope) inlineValue(ref ast.Ref) ast.Value {
	if !ref.HasPrefix(ast.DefaultRootRef) {
		return selectPart(ref)
	}
	for i := 2; i <= len(ref) && !s.replaced; i++ {
		all := s.rules[ref[:i].String()]
		if len(all) != 1 {
			continue
		}
		value := s.valueOf(all[0])
		if value.term == nil {
			return nil
		}
		s.size += value.size
		if i == len(ref) {
			return value.term.Value
		}
		if within, ok := value.term.Value.(ast.Ref); ok {
			return within.Concat(ref[i:])
		}
		return selectPart(append(ast.Ref{value.term}, ref[i:]...))
	}
	return nil
}

// selectPart returns the part of a constant that a reference selects, or what is left of the reference.
func selectPart(ref ast.Ref) ast.Value {
	at := ref[0]
	if !isConstant(at) || len(ref) == 1 {
		return nil
	}
	for i, step := range ref[1:] {
		var below *ast.Term
		switch v := at.Value.(type) {
		case ast.Object:
			if isConstant(step) {
				below = v.Get(step)
			}
		case *ast.Array:
			if isConstant(step) {
				below = v.Get(step)
			}
		}
		if below == nil {
			return append(ast.Ref{at}, ref[i+1:]...)
		}
		at = below
	}
	return at.Value
}
