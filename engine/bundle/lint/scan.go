// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// scan visits rules and counts how many loops over pods each part is inside. Loops are recognized in
// the source, before compilation: `some`, `every`, and an index that is a variable.
type scan struct {
	module *ast.Module
	// call runs for each call, and loop for each loop over pods. pods counts the
	// loops around it, the innermost included.
	call func(name string, at *ast.Location, pods int)
	loop func(at *ast.Location, pods int)

	// names are local names of collections of pods, and indexes are variables that are bound to one: a
	// further use of such a variable is no other loop.
	names, indexes map[string]bool
}

func (s *scan) scanRule(r *ast.Rule) {
	for ; r != nil; r = r.Else {
		s.names, s.indexes = map[string]bool{}, map[string]bool{}
		for _, i := range s.module.Imports {
			if ref, ok := i.Path.Value.(ast.Ref); ok && s.isPods(ref) {
				s.names[string(i.Name())] = true
			}
		}
		pods := s.scanBody(r.Body, 0)
		for _, t := range r.Head.Ref()[1:] {
			s.scanTerm(t, pods)
		}
		for _, t := range []*ast.Term{r.Head.Key, r.Head.Value} {
			s.scanTerm(t, pods)
		}
	}
}

// scanBody returns how many loops the code after the body is inside of.
func (s *scan) scanBody(b ast.Body, pods int) int {
	for _, x := range b {
		pods = s.scanExpr(x, pods)
	}
	return pods
}

// scanNested visits a body, whose names are visible only in it and in terms.
func (s *scan) scanNested(b ast.Body, pods int, terms ...*ast.Term) {
	names, indexes := maps.Clone(s.names), maps.Clone(s.indexes)
	inside := s.scanBody(b, pods)
	for _, t := range terms {
		s.scanTerm(t, inside)
	}
	s.names, s.indexes = names, indexes
}

func (s *scan) scanExpr(x *ast.Expr, pods int) int {
	for _, w := range x.With {
		s.scanTerm(w.Value, pods)
	}
	switch t := x.Terms.(type) {
	case *ast.SomeDecl:
		for _, symbol := range t.Symbols {
			args, ok := symbol.Value.(ast.Call)
			if !ok {
				continue // some i: a loop only where i is used
			}
			domain := args[len(args)-1]
			pods = s.scanTerm(domain, pods)
			if s.arePods(domain) {
				pods = s.enterLoop(x.Location, pods)
			}
		}
	case *ast.Every:
		inside := s.scanTerm(t.Domain, pods)
		if s.arePods(t.Domain) {
			inside = s.enterLoop(x.Location, inside)
		}
		s.scanNested(t.Body, inside)
	case *ast.Not:
		s.scanNested(t.Body, pods)
	case *ast.Term:
		pods = s.scanTerm(t, pods)
	case []*ast.Term:
		pods = s.scanCall(t, x.Location, pods)
	}
	return pods
}

func (s *scan) scanCall(t []*ast.Term, at *ast.Location, pods int) int {
	name := t[0].String()
	if s.call != nil {
		s.call(name, at, pods)
	}
	for _, arg := range t[1:] {
		pods = s.scanTerm(arg, pods)
	}
	if name == ast.Assign.Name && len(t) == 3 && s.arePods(t[2]) {
		if v, ok := t[1].Value.(ast.Var); ok {
			s.names[string(v)] = true
		}
	}
	return pods
}

func (s *scan) scanTerm(t *ast.Term, pods int) int {
	if t == nil {
		return pods
	}
	switch v := t.Value.(type) {
	case ast.Call:
		return s.scanCall(v, t.Location, pods)
	case ast.Ref:
		for i, step := range v[1:] {
			index, ok := step.Value.(ast.Var)
			if ok && !s.indexes[string(index)] && s.isPods(v[:i+1]) {
				s.indexes[string(index)] = true
				pods = s.enterLoop(t.Location, pods)
			}
			pods = s.scanTerm(step, pods)
		}
	case *ast.ArrayComprehension:
		s.scanNested(v.Body, pods, v.Term)
	case *ast.SetComprehension:
		s.scanNested(v.Body, pods, v.Term)
	case *ast.ObjectComprehension:
		s.scanNested(v.Body, pods, v.Key, v.Value)
	case *ast.Array:
		v.Foreach(func(e *ast.Term) { pods = s.scanTerm(e, pods) })
	case ast.Set:
		v.Foreach(func(e *ast.Term) { pods = s.scanTerm(e, pods) })
	case ast.Object:
		v.Foreach(func(k, e *ast.Term) { pods = s.scanTerm(e, s.scanTerm(k, pods)) })
	}
	return pods
}

func (s *scan) enterLoop(at *ast.Location, pods int) int {
	if s.loop != nil {
		s.loop(at, pods+1)
	}
	return pods + 1
}

func (s *scan) arePods(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.Var:
		return s.names[string(v)]
	case ast.Ref:
		return s.isPods(v)
	}
	return false
}

// isPods is true for facts that have one element for each pod.
func (s *scan) isPods(ref ast.Ref) bool {
	if len(ref) == 1 {
		v, ok := ref[0].Value.(ast.Var)
		return ok && s.names[string(v)]
	}
	return slices.ContainsFunc([]string{"input.pods", "input.rows"}, func(p string) bool { return ref.String() == p })
}
