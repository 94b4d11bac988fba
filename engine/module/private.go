// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// privateBuiltins copies types of built-in functions, so that compilers do not write to shared types. OPA 1.22 writes what it
// infers about an object into its type (ast.mergeTypes), which may be the type of a built-in function that all compilers of a
// process share. So functions whose types have objects get copies of their types.
func privateBuiltins(all []*ast.Builtin) []*ast.Builtin {
	out := slices.Clone(all)
	for i, b := range out {
		args := b.Decl.NamedFuncArgs()
		if !hasObject(b.Decl.NamedResult()) && !hasObject(args.Variadic) && !slices.ContainsFunc(args.Args, hasObject) {
			continue
		}
		own := *b
		for at, arg := range args.Args {
			args.Args[at] = copyType(arg)
		}
		result := copyType(b.Decl.NamedResult())
		if own.Decl = types.NewFunction(args.Args, result); args.Variadic != nil {
			own.Decl = types.NewVariadicFunction(args.Args, copyType(args.Variadic), result)
		}
		out[i] = &own
	}
	return out
}

func hasObject(t types.Type) bool {
	switch t := t.(type) {
	case *types.Object:
		return true
	case *types.NamedType:
		return hasObject(t.Type)
	case *types.Set:
		return hasObject(t.Of())
	case *types.Array:
		for i := range t.Len() {
			if hasObject(t.Select(i)) {
				return true
			}
		}
		return hasObject(t.Dynamic())
	case types.Any:
		return slices.ContainsFunc(t, hasObject)
	}
	return false
}

// copyType copies a type with the objects in it.
func copyType(t types.Type) types.Type {
	if !hasObject(t) {
		return t
	}
	switch t := t.(type) {
	case *types.Object:
		var static []*types.StaticProperty
		for _, p := range t.StaticProperties() {
			static = append(static, types.NewStaticProperty(p.Key, copyType(p.Value)))
		}
		var dynamic *types.DynamicProperty
		if d := t.DynamicProperties(); d != nil {
			dynamic = types.NewDynamicProperty(copyType(d.Key), copyType(d.Value))
		}
		return types.NewObject(static, dynamic)
	case *types.NamedType:
		own := *t
		own.Type = copyType(t.Type)
		return &own
	case *types.Set:
		return types.NewSet(copyType(t.Of()))
	case *types.Array:
		var static []types.Type
		for i := range t.Len() {
			static = append(static, copyType(t.Select(i)))
		}
		return types.NewArray(static, copyType(t.Dynamic()))
	case types.Any:
		own := slices.Clone(t)
		for i := range own {
			own[i] = copyType(own[i])
		}
		return own
	}
	return t
}
