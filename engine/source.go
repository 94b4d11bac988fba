// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// Source has the source of the policies that decide about a subject: the built-in ones and those that
// extend or replace them. It is not safe for concurrent use.
type Source struct {
	engine   *Engine
	snapshot *Snapshot
	view     *compiledView // of the point of PointClauses
	subject  decision.Subject
	modules  []*ast.Module
	// packages are the modules by the path of their package; names caches rules by package and name.
	packages map[string][]*ast.Module
	names    map[string]map[string][]locatedRule
}

// locatedRule is a rule and its location.
type locatedRule struct {
	module *ast.Module
	rule   *ast.Rule
}

// PolicySource returns the source of the policies of a snapshot that decide about a subject.
func (e *Engine) PolicySource(s *Snapshot, subject decision.Subject) *Source {
	out := &Source{
		engine: e, snapshot: s, subject: subject,
		packages: map[string][]*ast.Module{}, names: map[string]map[string][]locatedRule{},
	}
	for _, b := range append(bundle.Set{e.builtin}, s.set.DecidingIn(subject.Namespace)...) {
		for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
			m := b.Modules[file]
			path := m.Package.Path.String()
			out.modules = append(out.modules, m)
			out.packages[path] = append(out.packages[path], m)
		}
	}
	return out
}

// PointClauses returns the clauses of the domain of a point that its answer depends on, or may depend
// on: those of the rules that the answering rule refers to, directly or indirectly. Functions, and
// rules with an else, are left out, since their conditions are not in one place. There are none if the
// policies of the subject's namespace cannot be compiled.
func (s *Source) PointClauses(point decision.Name) []Clause {
	var out []Clause
	v, err := s.snapshot.viewOf(point, s.subject)
	if err != nil {
		return nil
	}
	s.view = v
	reach := map[*ast.Location]bool{}
	for r := range v.reachableRules(point) {
		reach[r.Location] = true
	}
	for _, m := range s.modules {
		if domainOf(m) != point.Domain() {
			continue
		}
		for _, r := range m.Rules {
			// The compiler has copies of the rules, with the same locations.
			if reach[r.Location] && !r.Default && r.Else == nil && len(r.Head.Args) == 0 {
				out = append(out, s.newClause(m, r))
			}
		}
	}
	return out
}

// ReachableRules returns the compiled rules and functions that may take part in the answer of a point,
// in the order of their places. Their references are complete and their variables are distinct. The
// caller must not change them. Its error says why the policies of the subject's namespace cannot be compiled.
func (s *Source) ReachableRules(point decision.Name) ([]*ast.Rule, error) {
	v, err := s.snapshot.viewOf(point, s.subject)
	if err != nil {
		return nil, fmt.Errorf("compiling the policies of %s: %w", point, err)
	}
	return slices.SortedFunc(maps.Keys(v.reachableRules(point)), func(a, b *ast.Rule) int { return a.Location.Compare(b.Location) }), nil
}

func (s *Source) newClause(m *ast.Module, r *ast.Rule) Clause {
	pkg := packageID(m)
	rule, _ := s.snapshot.FindRule(s.subject, idOf(r, pkg))
	rule.Place = module.ProblemAt(r.Location, "").SourcePosition()
	return Clause{Rule: rule, Own: rule.ID != pkg, Name: r.Head.Ref()[0].String(), Head: r.Head, Conditions: r.Body, module: m}
}

// domainOf returns the domain of a built-in, extending or replacing package.
func domainOf(m *ast.Module) string {
	path := m.Package.Path[1:] // without data
	first := func(i int) string {
		if i >= len(path) {
			return ""
		}
		s, _ := path[i].Value.(ast.String)
		return string(s)
	}
	if d := first(0); d != "extend" && d != "override" {
		return d
	}
	return first(1)
}

// Definition is one definition of a rule or function that a clause refers to.
type Definition struct {
	// Ways are tried in their order, and the first one that is true decides. There is more than one if the
	// definition has an else.
	Ways []Clause
	// Default is true for the default, which applies if no other definition does.
	Default bool
	// Bound are the terms that must be equal for the definition to match the reference.
	Bound []Binding
	// Within is true if the reference is to a part of the defined value.
	Within bool
}

// Binding is a term of a definition's head, with the term of the reference in its place.
type Binding struct {
	Here, There *ast.Term
	// Argument is true if the head's term declares its variables.
	Argument bool
}

// FindDefinitions returns the definitions of a rule that a clause refers to by a term, with arguments
// if it is a function. There are none if the term refers to no such rule.
func (s *Source) FindDefinitions(c Clause, locals ast.VarSet, term *ast.Term, args []*ast.Term) []Definition {
	ref := s.resolveRulePath(c, locals, term)
	var out []Definition
	for i := 1; i < len(ref); i++ {
		name, ok := ref[i].Value.(ast.String)
		if !ok {
			break
		}
		for _, w := range s.packageRules(ref[:i].String())[string(name)] {
			if d, ok := s.matchDefinition(w, ref[i:], args); ok {
				out = append(out, d)
			}
		}
	}
	return out
}

// matchDefinition matches a rule with the part of a reference that begins at its name.
func (s *Source) matchDefinition(w locatedRule, ref ast.Ref, args []*ast.Term) (Definition, bool) {
	head := w.rule.Head
	d := Definition{Default: w.rule.Default}
	if len(head.Args) != 0 && len(args) < len(head.Args) {
		return d, false
	}
	for i, here := range head.Args {
		d.Bound = append(d.Bound, Binding{here, args[i], true})
	}
	terms := slices.Clone(head.Ref())
	if head.RuleKind() == ast.MultiValue {
		terms = append(terms, head.Key)
	}
	for i := 1; i < min(len(terms), len(ref)); i++ {
		here, there := terms[i], ref[i]
		if !ast.IsConstant(here.Value) || !ast.IsConstant(there.Value) {
			d.Bound = append(d.Bound, Binding{here, there, false})
		} else if !here.Equal(there) {
			return d, false
		}
	}
	d.Within = len(ref) > len(terms)
	for r := w.rule; r != nil; r = r.Else {
		d.Ways = append(d.Ways, s.newClause(w.module, r))
	}
	return d, true
}

// resolveRulePath returns the full path of a rule that a clause refers to; nil if the term refers to
// something else.
func (s *Source) resolveRulePath(c Clause, locals ast.VarSet, term *ast.Term) ast.Ref {
	ref, ok := term.Value.(ast.Ref)
	if !ok {
		ref = ast.Ref{term}
	}
	name, ok := ref[0].Value.(ast.Var)
	if !ok || locals.Contains(name) {
		return nil
	}
	if name.Equal(ast.DefaultRootDocument.Value) {
		return ref
	}
	for _, i := range c.module.Imports {
		if path, ok := i.Path.Value.(ast.Ref); ok && i.Name() == name && path.HasPrefix(ast.DefaultRootRef) {
			return path.Concat(ref[1:])
		}
	}
	if pkg := c.module.Package.Path; s.packageRules(pkg.String())[string(name)] != nil {
		return pkg.Append(ast.StringTerm(string(name))).Concat(ref[1:])
	}
	return nil
}

// packageRules returns the rules of a package by their names.
func (s *Source) packageRules(pkg string) map[string][]locatedRule {
	out, ok := s.names[pkg]
	if ok || s.packages[pkg] == nil {
		return out
	}
	out = map[string][]locatedRule{}
	for _, m := range s.packages[pkg] {
		for _, r := range m.Rules {
			name := string(r.Head.Ref()[0].Value.(ast.Var))
			out[name] = append(out[name], locatedRule{m, r})
		}
	}
	s.names[pkg] = out
	return out
}
