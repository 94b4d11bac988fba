package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// Clause is one way in which a rule of policies becomes true, as it was written.
type Clause struct {
	// Rule is what is known of the rule; its place is that of the clause.
	Rule Rule
	// Own is true when the rule has an id of its own, and not that of its package.
	Own bool
	// Name is that of the rule in its package, such as hold.
	Name string
	// Conditions must all be true.
	Conditions ast.Body

	module *ast.Module
}

// Clauses are those that decide about a subject in a domain: of the built-in
// policies and of whatever extends or replaces them. Functions, and rules with
// an else, are left out: what they need is not in one place.
func (s *Snapshot) Clauses(builtin *bundle.Bundle, subject decision.Subject, domain string) []Clause {
	var out []Clause
	for _, b := range append(bundle.Set{builtin}, s.set.For(subject.Namespace)...) {
		for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
			m := b.Modules[file]
			if domainOf(m) != domain {
				continue
			}
			for _, r := range m.Rules {
				if r.Default || r.Else != nil || len(r.Head.Args) > 0 {
					continue
				}
				pkg := packageID(m)
				rule, _ := s.Rule(subject, idOf(r, pkg))
				rule.Place = module.At(r.Location, "").Place()
				out = append(out, Clause{Rule: rule, Own: rule.ID != pkg, Name: r.Head.Ref()[0].String(), Conditions: r.Body, module: m})
			}
		}
	}
	return out
}

// domainOf is what a package is about, be it built in, extending or replacing.
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

// Solve finds values of variables for which conditions are true on a question,
// as far as they are strings, numbers and so on; nil if there are none. They see
// what the clause sees. Conditions whose variables nothing binds are an error. It
// ends with the context, and says nothing about the policies that are active.
func (e *Engine) Solve(ctx context.Context, s *Snapshot, subject decision.Subject, c Clause, conditions ast.Body, input ast.Value) (map[string]any, error) {
	v := s.view(subject)
	rs, err := rego.New(
		rego.ParsedQuery(conditions.Copy()),
		rego.ParsedPackage(c.module.Package),
		rego.ParsedImports(c.module.Imports),
		rego.Compiler(v.compiler),
		rego.Store(v.store),
		rego.Transaction(v.txn),
		rego.ParsedInput(input),
	).Eval(ctx)
	if err != nil {
		return nil, fmt.Errorf("solving conditions of %s: %w", c.Rule.ID, err)
	}
	for _, r := range rs {
		// What a rule would end at, a query answers as false.
		if !slices.ContainsFunc(r.Expressions, func(x *rego.ExpressionValue) bool { return x.Value == false }) {
			return r.Bindings, nil
		}
	}
	return nil, nil
}
