// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
)

// references has the references of the platform's rules. They show, without compiling, in which answers the bundles
// of a namespace take part, and which packages must be compiled with these bundles.
type references struct {
	compiler *ast.Compiler
	// byRoot has the references to data by their first step; "" has references to all of data, and computed ones.
	byRoot map[string][]reference
	// elseOf has, for each else, the rule or the else before it.
	elseOf map[*ast.Rule]*ast.Rule
	// modules has the keys of modules by package, and uses the packages that the rules of a package may refer to.
	modules map[string][]string
	uses    map[string]map[string]bool
}

// reference is a reference of a rule.
type reference struct {
	to   ast.Ref
	from *ast.Rule
}

func referencesOf(c *ast.Compiler) *references {
	r := &references{
		compiler: c, byRoot: map[string][]reference{}, elseOf: map[*ast.Rule]*ast.Rule{},
		modules: map[string][]string{}, uses: map[string]map[string]bool{},
	}
	for key, m := range c.Modules {
		pkg := m.Package.Path.String()
		r.modules[pkg] = append(r.modules[pkg], key)
		if r.uses[pkg] == nil {
			r.uses[pkg] = map[string]bool{}
			for i := 2; i < len(m.Package.Path); i++ { // packages that annotate subpackages
				r.uses[pkg][m.Package.Path[:i].String()] = true
			}
		}
		for _, rule := range m.Rules {
			r.addRule(rule, pkg)
		}
	}
	return r
}

// addRule notes the references of a rule; references of its else count as the rule's own.
func (r *references) addRule(rule *ast.Rule, pkg string) {
	ast.WalkRefs(rule, func(ref ast.Ref) bool {
		if ref.HasPrefix(ast.DefaultRootRef) {
			root := ""
			if len(ref) > 1 {
				if s, ok := ref[1].Value.(ast.String); ok {
					root = string(s)
				}
			}
			r.byRoot[root] = append(r.byRoot[root], reference{ref, rule})
		}
		return false
	})
	for at := rule; at != nil; at = at.Else {
		if at.Else != nil {
			r.elseOf[at.Else] = at
		}
		for dep := range r.compiler.Graph.Dependencies(at) {
			if used, ok := dep.(*ast.Rule); ok && used.Module != nil {
				r.uses[pkg][used.Module.Package.Path.String()] = true
			}
		}
	}
}

// affectedBy returns the rules whose values may change because of the bundles of a namespace.
func (r *references) affectedBy(own bundle.Set) map[*ast.Rule]bool {
	out := map[*ast.Rule]bool{}
	for _, b := range own {
		for _, m := range b.Modules {
			for _, rule := range m.Rules {
				path := m.Package.Path.Extend(rule.Head.Ref())
				r.markDependents(path, func(ref ast.Ref) bool { return mayMeet(path, ref) }, out)
			}
		}
		for root := range b.Data {
			r.markDependents(ast.DefaultRootRef.Append(ast.StringTerm(root)), func(ref ast.Ref) bool { return hasData(b.Data, ref[1:]) }, out)
		}
	}
	return out
}

// markDependents adds the rules with a reference that meets a path, and all rules that depend on them.
func (r *references) markDependents(path ast.Ref, meets func(ast.Ref) bool, out map[*ast.Rule]bool) {
	var next []*ast.Rule
	roots := []string{""}
	if s, ok := path[1].Value.(ast.String); ok {
		roots = append(roots, string(s))
	}
	for _, root := range roots {
		for _, ref := range r.byRoot[root] {
			if !out[ref.from] && meets(ref.to) {
				next = append(next, ref.from)
			}
		}
	}
	for len(next) > 0 {
		rule := next[len(next)-1]
		if next = next[:len(next)-1]; out[rule] {
			continue
		}
		out[rule] = true
		if whole := r.elseOf[rule]; whole != nil {
			next = append(next, whole)
		}
		for dep := range r.compiler.Graph.Dependents(rule) {
			if user, ok := dep.(*ast.Rule); ok {
				next = append(next, user)
			}
		}
	}
}

// modulesFor returns the keys of the modules that the values of some rules depend on: their whole packages, and
// those that these refer to.
func (r *references) modulesFor(rules map[*ast.Rule]bool) map[string]bool {
	var next []string
	for rule := range rules {
		if rule.Module != nil {
			next = append(next, rule.Module.Package.Path.String())
		}
	}
	seen, out := map[string]bool{}, map[string]bool{}
	for len(next) > 0 {
		pkg := next[len(next)-1]
		if next = next[:len(next)-1]; seen[pkg] {
			continue
		}
		seen[pkg] = true
		for _, key := range r.modules[pkg] {
			out[key] = true
		}
		for used := range r.uses[pkg] {
			next = append(next, used)
		}
	}
	return out
}

// mayMeet reports whether a reference may be to a rule, to a part of its value, or to something that contains it.
func mayMeet(rule, ref ast.Ref) bool {
	for i := 1; i < min(len(rule), len(ref)); i++ {
		a, b := rule[i].Value, ref[i].Value
		if ast.IsConstant(a) && ast.IsConstant(b) && a.Compare(b) != 0 {
			return false
		}
	}
	return true
}

// hasData reports whether a reference may be to something in data. It does not check indices of lists.
func hasData(data any, ref ast.Ref) bool {
	object, ok := data.(map[string]any)
	if len(ref) == 0 || !ok {
		return true
	}
	if key, ok := ref[0].Value.(ast.String); ok {
		below, there := object[string(key)]
		return there && hasData(below, ref[1:])
	}
	for _, below := range object {
		if hasData(below, ref[1:]) {
			return true
		}
	}
	return len(object) == 0
}
