// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// changedRules returns the rules that not all sides have, if the built-in policies differ.
func changedRules(sides []*side, all [][]*ast.Rule) map[*ast.Rule]bool {
	out := map[*ast.Rule]bool{}
	if len(sides) < 2 {
		return out
	}
	var data []ast.Ref
	listChangedData(sides[0].dataValue(), sides[1].dataValue(), ast.Ref{ast.DefaultRootDocument}, &data)
	counts, texts := map[string]int{}, map[*ast.Rule]string{}
	for i, rules := range all {
		imports := sides[i].listImports()
		known := map[string]bool{}
		for _, r := range rules {
			texts[r] = ruleText(r, imports)
			known[texts[r]] = true
		}
		for text := range known {
			counts[text]++
		}
	}
	for r, text := range texts {
		out[r] = sides[0].builtin != sides[1].builtin && counts[text] < len(all) || readsData(r, data)
	}
	return out
}

// listImports returns the imports of the built-in policies, by package. The compiler drops them.
func (s *side) listImports() map[string]string {
	out := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(s.builtin.Modules)) {
		m := s.builtin.Modules[file]
		for _, i := range m.Imports {
			out[m.Package.Path.String()] += i.String() + "\n"
		}
	}
	return out
}

// ruleText is the source of a rule, with what the names in it are imported from.
func ruleText(r *ast.Rule, imports map[string]string) string {
	path := r.Module.Package.Path.String()
	return path + "\n" + imports[path] + string(r.Location.Text)
}

// listChangedData adds the paths at which data differ.
func listChangedData(a, b ast.Value, at ast.Ref, out *[]ast.Ref) {
	x, isObject := a.(ast.Object)
	y, isOther := b.(ast.Object)
	if !isObject || !isOther {
		if a.Compare(b) != 0 {
			*out = append(*out, at)
		}
		return
	}
	for _, of := range []ast.Object{x, y} {
		of.Foreach(func(k, _ *ast.Term) {
			before, after := x.Get(k), y.Get(k)
			switch {
			case before == nil || after == nil:
				*out = append(*out, at.Append(k))
			case of == x:
				listChangedData(before.Value, after.Value, at.Append(k), out)
			}
		})
	}
}

// readsData reports whether a rule refers to one of these data, to a part of it, or to what it is in.
func readsData(r *ast.Rule, data []ast.Ref) bool {
	found := false
	ast.WalkRefs(r, func(ref ast.Ref) bool {
		found = found || slices.ContainsFunc(data, func(at ast.Ref) bool {
			for i := range min(len(ref), len(at)) {
				if (i == 0 || ast.IsConstant(ref[i].Value)) && !ref[i].Equal(at[i]) {
					return false
				}
			}
			return true
		})
		return found
	})
	return found
}
