// SPDX-License-Identifier: Apache-2.0

package implication

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// maxMatches bounds how many ways are tried to match the variables of two rules.
const maxMatches = 200

// IsCovered reports whether another rule is true with some values of its variables wherever this one is.
// The key of the other rule with these values, in the variables of this one, must be accepted.
func (b *Body) IsCovered(by *Body, inputs Inputs, accept func(key *ast.Term) bool) bool {
	if len(inputs) == 0 || by.Key == nil || b.reader.replaced || by.reader.replaced {
		return false
	}
	tries := 0
	return b.matchVariables(by, 0, map[ast.Var]ast.Var{}, &tries, func(as map[ast.Var]ast.Var) bool {
		key, ok := renameTerm(by.Key, as)
		return ok && accept(key) && b.impliesBody(by, inputs, as)
	})
}

// matchVariables finds for the variables of another rule that go through collections those of this one that go
// through the same ones, beginning with a condition, until found is true.
func (b *Body) matchVariables(by *Body, from int, as map[ast.Var]ast.Var, tries *int, found func(map[ast.Var]ast.Var) bool) bool {
	for i := from; i < len(by.Conditions); i++ {
		call, ok := collectionOf(by.Conditions[i])
		if !ok {
			continue
		}
		of, ok := renameTerm(call[len(call)-1], as)
		if !ok {
			return false
		}
		for _, c := range b.Conditions {
			own, ok := collectionOf(c)
			if !ok || len(own) != len(call) || !own[len(own)-1].Equal(of) {
				continue
			}
			if *tries++; *tries > maxMatches {
				return false
			}
			if more := matchNames(call[1:len(call)-1], own[1:len(own)-1], as); more != nil && b.matchVariables(by, i+1, more, tries, found) {
				return true
			}
		}
		return false
	}
	return found(as)
}

// collectionOf returns the declaration of a condition of the form: some k, v in all.
func collectionOf(c Condition) (ast.Call, bool) {
	if c.expr == nil {
		return nil, false
	}
	some, ok := c.expr.Terms.(*ast.SomeDecl)
	if !ok || len(some.Symbols) != 1 {
		return nil, false
	}
	call, ok := some.Symbols[0].Value.(ast.Call)
	return call, ok
}

// matchNames adds names to those that are known; nil if they are no variables.
func matchNames(names, own []*ast.Term, as map[ast.Var]ast.Var) map[ast.Var]ast.Var {
	out := map[ast.Var]ast.Var{}
	for k, v := range as {
		out[k] = v
	}
	for i := range names {
		name, ok := names[i].Value.(ast.Var)
		to, ownOK := own[i].Value.(ast.Var)
		if !ok || !ownOK {
			return nil
		}
		out[name] = to
	}
	return out
}

// renameTerm returns a term with other variables; false if there is one that has no other name.
func renameTerm(t *ast.Term, as map[ast.Var]ast.Var) (*ast.Term, bool) {
	if !hasNames(variablesOf(t), as) {
		return nil, false
	}
	out, err := ast.TransformVars(t.Copy(), func(v ast.Var) (ast.Value, error) { return renameVar(v, as), nil })
	value, ok := out.(ast.Value)
	if err != nil || !ok {
		return nil, false
	}
	return ast.NewTerm(value).SetLocation(t.Location), true
}

func renameExpr(x *ast.Expr, as map[ast.Var]ast.Var) (*ast.Expr, bool) {
	if !hasNames(variablesOf(x), as) {
		return nil, false
	}
	out, err := ast.TransformVars(x.Copy(), func(v ast.Var) (ast.Value, error) { return renameVar(v, as), nil })
	renamedExpr, ok := out.(*ast.Expr)
	return renamedExpr, err == nil && ok
}

func renameVar(v ast.Var, as map[ast.Var]ast.Var) ast.Value {
	if to, ok := as[v]; ok {
		return to
	}
	return v
}

func hasNames(vars ast.VarSet, as map[ast.Var]ast.Var) bool {
	for v := range vars {
		if _, ok := as[v]; !ok {
			return false
		}
	}
	return true
}

// impliesBody reports whether all conditions of another rule follow from those of this one, and all that they and
// its head are made of has a value.
func (b *Body) impliesBody(by *Body, inputs Inputs, as map[ast.Var]ast.Var) bool {
	all := make([]int, len(b.Conditions))
	for i := range all {
		all[i] = i
	}
	for _, c := range by.Conditions {
		parts, understood := c.terms, true
		if c.expr != nil {
			parts, understood = neededParts(c.expr)
		} else if c.terms == nil {
			return false
		}
		if !understood {
			x, ok := renameExpr(c.expr, as)
			if !ok || !b.isImplied(inputs, all, x) {
				return false
			}
			continue
		}
		for _, part := range parts {
			if isTotal(part) {
				continue
			}
			t, ok := renameTerm(part, as)
			if !ok || !b.hasValue(inputs, all, t) {
				return false
			}
		}
	}
	return true
}

// neededParts returns what must have a value for a condition that gives variables theirs to be true; false for a
// condition that does more.
func neededParts(x *ast.Expr) ([]*ast.Term, bool) {
	if x.Negated {
		return nil, false
	}
	if some, ok := x.Terms.(*ast.SomeDecl); ok && len(some.Symbols) == 1 {
		if _, ok := some.Symbols[0].Value.(ast.Call); ok {
			return nil, true // matched with one of the same collection
		}
	}
	if !x.IsAssignment() {
		return nil, false
	}
	if _, ok := x.Operand(0).Value.(ast.Var); !ok {
		return nil, false
	}
	return definedParts(x.Operand(1)), isSubject(x.Operand(1))
}

// isTotal reports whether a call has a value wherever its arguments have.
func isTotal(t *ast.Term) bool {
	call, ok := t.Value.(ast.Call)
	if !ok || call[0].String() != ast.Sprintf.Name || len(call) != 3 {
		return false
	}
	_, format := call[1].Value.(ast.String)
	_, list := call[2].Value.(*ast.Array)
	return format && list
}

// hasValue reports whether a term has a value wherever the conditions are true.
func (b *Body) hasValue(inputs Inputs, premises []int, t *ast.Term) bool {
	for _, in := range inputs {
		s := b.newStore(in, premises)
		if k := s.knowTerm(t); k.presence == there {
			continue
		} else {
			k.presence = absent
		}
		if !s.isContradiction() {
			return false
		}
	}
	return true
}
