// SPDX-License-Identifier: Apache-2.0

package implication

import (
	"reflect"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/term"
)

// shape is what the type of an input says of a term.
type shape struct {
	// typ is the type of its value; nil if nothing is known of it.
	typ reflect.Type
	// never is true if there is no such value, and always if there is one in each input.
	never, always bool
	// within is true if there is such a value wherever there is one that it is a part of.
	within bool
	values span
}

// unknownShape is that of a term of which nothing is known.
func unknownShape() shape { return shape{values: anyValue()} }

// shapeOf returns what is known of a value of a type.
func shapeOf(t reflect.Type) shape {
	out := shape{typ: t, values: anyValue()}
	nullable := false
	for !term.HasOwnForm(t) && t.Kind() == reflect.Pointer {
		t, nullable = t.Elem(), true
	}
	if term.HasOwnForm(t) {
		return unknownShape()
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		out.values.kinds = boolean
	case k >= reflect.Int && k <= reflect.Int64:
		out.values.kinds, out.values.whole = number, true
	case k >= reflect.Uint && k <= reflect.Uint64:
		out.values.kinds, out.values.whole = number, true
		out.values.low = &limit{value: ast.Number("0")}
	case k == reflect.Float32, k == reflect.Float64:
		out.values.kinds = number
	case k == reflect.String:
		out.values.kinds = text
	case k == reflect.Slice, k == reflect.Array:
		out.values.kinds = array
	case k == reflect.Map, k == reflect.Struct:
		out.values.kinds = object
	default:
		return unknownShape()
	}
	out.typ = t
	if nullable {
		out.values.kinds |= null
	}
	return out
}

// partShape returns what is known of a part of a value.
func (s shape) partShape(step ast.Value) shape {
	if s.typ == nil {
		return unknownShape()
	}
	out := unknownShape()
	name, isName := step.(ast.String)
	constant := ast.IsConstant(step)
	switch k := s.typ.Kind(); {
	case k == reflect.Struct && isName:
		f, ok := term.FindField(s.typ, string(name))
		if !ok {
			return shape{never: true, values: anyValue()}
		}
		out = fieldShape(f)
		out.always = s.always && out.within && s.values.kinds == object
	case k == reflect.Map && (isName || !constant):
		out = shapeOf(s.typ.Elem())
	case k == reflect.Slice || k == reflect.Array:
		if _, index := step.(ast.Number); constant && !index {
			return shape{never: true, values: anyValue()}
		}
		out = shapeOf(s.typ.Elem())
	case k == reflect.Struct && !constant:
		return out
	default: // a part of a text or a number, or an entry whose key is no text
		return shape{never: true, values: anyValue()}
	}
	return out
}

// fieldShape returns what is known of a field. A field that is left out where it is empty is never empty.
func fieldShape(f term.Field) shape {
	out := shapeOf(f.Type)
	out.within = !f.OmitsEmpty && !f.OmitsZero && !f.InPointer
	if out.typ == nil {
		return out
	}
	pointer := f.Type.Kind() == reflect.Pointer
	if f.OmitsEmpty || f.OmitsZero {
		if pointer {
			out.values.kinds &^= null
		} else {
			out.values.never = append(out.values.never, ast.Boolean(false), ast.String(""))
			if out.values.whole { // -0 is not left out, and is 0 for a policy
				out.values.never = append(out.values.never, ast.Number("0"))
			}
		}
	}
	return out
}

// elementShape returns what is known of the elements of a collection.
func (s shape) elementShape() shape {
	if s.typ == nil {
		return unknownShape()
	}
	switch s.typ.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		out := shapeOf(s.typ.Elem())
		out.always = true // a variable that goes through a collection has a value
		return out
	}
	return unknownShape()
}

// keyShape returns what is known of the keys of a collection.
func (s shape) keyShape() shape {
	out := unknownShape()
	if s.typ == nil {
		return out
	}
	switch s.typ.Kind() {
	case reflect.Map:
		out.values.kinds = text
	case reflect.Slice, reflect.Array:
		out.values.kinds, out.values.whole = number, true
		out.values.low = &limit{value: ast.Number("0")}
	default:
		return out
	}
	out.always = true
	return out
}

// domain is what a variable goes through.
type domain struct {
	of  *ast.Term
	key bool
}

// shapeOfTerm returns what the type of an input says of a reference or a variable.
func shapeOfTerm(in reflect.Type, t *ast.Term, domains map[ast.Var]domain, depth int) shape {
	ref, ok := t.Value.(ast.Ref)
	if v, isVar := t.Value.(ast.Var); isVar {
		ref, ok = ast.Ref{ast.NewTerm(v)}, true
	}
	const maxDepth = 32
	if !ok || in == nil || depth > maxDepth {
		return unknownShape()
	}
	head, ok := ref[0].Value.(ast.Var)
	if !ok {
		return unknownShape()
	}
	var out shape
	if head.Equal(ast.InputRootDocument.Value) {
		out = shapeOf(in)
		out.always, out.within = true, true
	} else {
		d, ok := domains[head]
		if !ok {
			return unknownShape()
		}
		of := shapeOfTerm(in, d.of, domains, depth+1)
		if out = of.elementShape(); d.key {
			out = of.keyShape()
		}
	}
	for _, step := range ref[1:] {
		if out = out.partShape(step.Value); out.never {
			return out
		}
	}
	return out
}
