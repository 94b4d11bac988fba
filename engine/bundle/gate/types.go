// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/module"
)

// checkAnswerTypes compares the types that OPA's type checker infers for answering rules with the
// types of the contract. It only reports certain errors: where the checker knows no type, evaluation
// finds the error.
func checkAnswerTypes(c *ast.Compiler, b *bundle.Bundle, domain string) module.Problems {
	var out module.Problems
	look := func(t reflect.Type, elem bool, path ...string) {
		ref := ast.DefaultRootRef
		for _, p := range path {
			ref = ref.Append(ast.StringTerm(p))
		}
		rules := c.GetRulesExact(ref)
		known := c.TypeEnv.GetByRef(ref)
		if len(rules) == 0 || known == nil {
			return
		}
		if elem {
			set, ok := known.(*types.Set)
			if !ok {
				return
			}
			known = set.Of()
		}
		for _, alternative := range typeAlternatives(known) {
			if why := typeMismatch(alternative, t); why != "" {
				out = append(out, module.ProblemAt(rules[0].Location, "%s cannot be the answer: %s", ref, why))
			}
		}
	}
	for _, p := range catalog.All() {
		point := strings.TrimPrefix(string(p.Name), domain+"/")
		switch {
		case p.Name.Domain() != domain:
		case b.Kind == bundle.Builtin:
			look(p.Out, false, domain, point)
		default:
			look(p.Out, false, "override", domain, point)
		}
	}
	for _, m := range b.Modules {
		path := strings.Split(module.PackagePath(m), ".")
		if len(path) != 3 || path[0] != "extend" {
			continue
		}
		for _, x := range bundle.AllExtensions() {
			if x.Domain == domain && x.Answer != nil {
				look(x.Answer, x.Set, append(path, x.Rule)...)
			}
		}
	}
	slices.SortFunc(out, func(a, b module.Problem) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// typeAlternatives returns the types that a value may have; nil means any.
func typeAlternatives(t types.Type) []types.Type {
	if union, ok := t.(types.Any); ok {
		return union
	}
	return []types.Type{t}
}

// typeMismatch says why no value of a Rego type can be decoded to a Go type.
func typeMismatch(known types.Type, want reflect.Type) string {
	if union, ok := known.(types.Any); ok {
		why := ""
		for _, a := range union {
			if why = typeMismatch(a, want); why == "" {
				return "" // one of them fits
			}
		}
		return why
	}
	if want.Kind() == reflect.Pointer {
		if _, null := known.(types.Null); null {
			return ""
		}
		return typeMismatch(known, want.Elem())
	}
	if named, ok := known.(*types.NamedType); ok {
		return typeMismatch(named.Type, want)
	}
	is := func(ok bool, what string) string {
		if ok {
			return ""
		}
		return fmt.Sprintf("it is %s, want %s", describeType(known), what)
	}
	switch want.Kind() {
	case reflect.Bool:
		_, ok := known.(types.Boolean)
		return is(ok, "a boolean")
	case reflect.String:
		_, ok := known.(types.String)
		return is(ok, "a string")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		_, ok := known.(types.Number)
		return is(ok, "a number")
	case reflect.Slice:
		switch list := known.(type) {
		case *types.Set:
			return prefixPath("an element", typeMismatch(list.Of(), want.Elem()))
		case *types.Array:
			return elementMismatch(list, want.Elem())
		}
		return is(false, "an array")
	case reflect.Map:
		object, ok := known.(*types.Object)
		if !ok {
			return is(false, "an object")
		}
		return entryMismatch(object, want.Elem())
	case reflect.Struct:
		object, ok := known.(*types.Object)
		if !ok {
			return is(false, "an object")
		}
		return fieldMismatch(object, want)
	}
	return ""
}

// elementMismatch says why an array cannot be a list of a type.
func elementMismatch(list *types.Array, want reflect.Type) string {
	for i := range list.Len() {
		if why := typeMismatch(list.Select(i), want); why != "" {
			return prefixPath(fmt.Sprintf("element %d", i), why)
		}
	}
	if d := list.Dynamic(); d != nil {
		return prefixPath("an element", typeMismatch(d, want))
	}
	return ""
}

// entryMismatch says why an object cannot be a map to a type.
func entryMismatch(object *types.Object, want reflect.Type) string {
	for _, p := range object.StaticProperties() {
		if why := typeMismatch(p.Value, want); why != "" {
			return prefixPath(fmt.Sprint(p.Key), why)
		}
	}
	if d := object.DynamicProperties(); d != nil {
		return prefixPath("a value", typeMismatch(d.Value, want))
	}
	return ""
}

func prefixPath(where, why string) string {
	if why == "" {
		return ""
	}
	return where + ": " + why
}

func describeType(t types.Type) string {
	switch t.(type) {
	case types.Null:
		return "null"
	case types.Boolean:
		return "a boolean"
	case types.Number:
		return "a number"
	case types.String:
		return "a string"
	case *types.Array:
		return "an array"
	case *types.Object:
		return "an object"
	case *types.Set:
		return "a set"
	case *types.Function:
		return "a function"
	}
	return types.Sprint(t)
}

// fieldMismatch compares an object with a struct of the contract.
func fieldMismatch(object *types.Object, want reflect.Type) string {
	static := map[string]types.Type{}
	for _, p := range object.StaticProperties() {
		if key, ok := p.Key.(string); ok {
			static[key] = p.Value
		}
	}
	var has []string
	for i := range want.NumField() {
		f := want.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		has = append(has, name)
		t, ok := static[name]
		if !ok {
			if !strings.Contains(opts, "omit") && f.Type.Kind() != reflect.Pointer && object.DynamicProperties() == nil {
				return fmt.Sprintf("the field %s is missing", name)
			}
			continue
		}
		if why := typeMismatch(t, f.Type); why != "" {
			return prefixPath(name, why)
		}
	}
	for key := range static {
		if !slices.Contains(has, key) {
			slices.Sort(has)
			return fmt.Sprintf("there is no field %s; there are %s", key, strings.Join(has, ", "))
		}
	}
	return ""
}
