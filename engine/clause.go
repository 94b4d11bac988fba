// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// Clause is one definition of a rule of policies, in its source form.
type Clause struct {
	// Rule describes the rule; its place is that of the clause.
	Rule Rule
	// Own is true if the rule has its own id, and not that of its package.
	Own bool
	// Name is the name of the rule in its package, such as hold.
	Name string
	// Head is the head of the rule: its value if the conditions are true.
	Head *ast.Head
	// Conditions must all be true.
	Conditions ast.Body

	module *ast.Module
}

// SourceModule returns the module of the clause. Names have the same meaning in all clauses of a
// module.
func (c Clause) SourceModule() *ast.Module { return c.module }

// LocalVars returns the variables that arguments and conditions declare, at any depth. They hide rules
// and imports of the same name.
func (c Clause) LocalVars() ast.VarSet {
	out := ast.NewVarSet()
	declare := func(terms ...*ast.Term) {
		for _, t := range terms {
			if t != nil {
				ast.WalkVars(t, func(v ast.Var) bool { out.Add(v); return false })
			}
		}
	}
	declare(c.Head.Args...)
	ast.NewGenericVisitor(func(node any) bool {
		switch x := node.(type) {
		case *ast.Every:
			declare(x.Key, x.Value)
		case *ast.Expr:
			declare(DeclaredTerms(x)...)
		}
		return false
	}).Walk(c.Conditions)
	return out
}

// DeclaredTerms returns the terms of a condition whose variables it declares.
func DeclaredTerms(x *ast.Expr) []*ast.Term {
	some, ok := x.Terms.(*ast.SomeDecl)
	switch {
	case ok && declaresIn(some):
		call := some.Symbols[0].Value.(ast.Call)
		return call[1 : len(call)-1]
	case ok:
		return some.Symbols
	case x.IsAssignment() && len(x.Operands()) == 2:
		return x.Operands()[:1]
	}
	return nil
}

// declaresIn reports whether a declaration is of the form: some k, v in all.
func declaresIn(some *ast.SomeDecl) bool {
	if len(some.Symbols) != 1 {
		return false
	}
	call, ok := some.Symbols[0].Value.(ast.Call)
	return ok && len(call) > 2
}

// SolveConditions finds values of variables for which conditions are true on an input; nil if there
// are none. The conditions have the scope of the clause. A variable that nothing binds is an error. A
// declared variable that nothing uses is allowed, since the condition that used it may have been left
// out. The evaluation ends with the context, and does not count against the active policies.
func (s *Source) SolveConditions(ctx context.Context, c Clause, conditions ast.Body, input ast.Value) (map[ast.Var]ast.Value, error) {
	prepared, err := s.PrepareConditions(ctx, c, conditions)
	if err != nil {
		return nil, err
	}
	return prepared.SolveInput(ctx, input)
}

// PreparedConditions are conditions of a clause that are compiled to be solved for several inputs.
type PreparedConditions struct {
	source   *Source
	view     *compiledView
	clause   Clause
	prepared rego.PreparedEvalQuery
}

// PrepareConditions compiles conditions, as for SolveConditions.
func (s *Source) PrepareConditions(ctx context.Context, c Clause, conditions ast.Body) (_ *PreparedConditions, err error) {
	defer func() { // as for decisions
		if p := recover(); p != nil {
			err = fmt.Errorf("preparing conditions of %s: panic: %v", c.Rule.ID, p)
		}
	}()
	if err := ctx.Err(); err != nil { // compilation does not check it
		return nil, fmt.Errorf("solving conditions of %s: %w", c.Rule.ID, err)
	}
	prepared, err := module.PrepareQuery(ctx, rego.New(
		rego.ParsedQuery(useDeclaredVars(conditions)),
		rego.ParsedPackage(c.module.Package),
		rego.ParsedImports(c.module.Imports),
		rego.Compiler(s.view.compiler),
		rego.Store(s.view.store),
		rego.Transaction(s.view.txn),
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t.Value, nil }),
	))
	if err != nil {
		return nil, fmt.Errorf("preparing conditions of %s: %w", c.Rule.ID, err)
	}
	return &PreparedConditions{s, s.view, c, prepared}, nil
}

// SolveInput finds values of variables for which the conditions are true on an input, as SolveConditions does.
func (p *PreparedConditions) SolveInput(ctx context.Context, input ast.Value) (_ map[ast.Var]ast.Value, err error) {
	s, c := p.source, p.clause
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("solving conditions of %s: panic: %v", c.Rule.ID, p)
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("solving conditions of %s: %w", c.Rule.ID, err)
	}
	var rs rego.ResultSet
	ev := newEvaluation(
		&query{prepared: p.prepared, txn: p.view.txn, tenant: p.view.tenant, extended: true},
		input, &decisionRequest{name: solvePoint, budget: solveBudget * s.engine.patience, subject: s.subject, aside: true},
	)
	ev.results = func(all rego.ResultSet) { rs = all }
	// The result is read only if the evaluation has ended.
	if outcome, err := s.engine.runEvaluation(ctx, ev); outcome != decision.Decided {
		return nil, fmt.Errorf("solving conditions of %s: %w", c.Rule.ID, err)
	}
	for _, r := range rs {
		// A condition that would make a rule undefined is false in the result of a query.
		if slices.ContainsFunc(r.Expressions, func(x *rego.ExpressionValue) bool { return x.Value == any(ast.Boolean(false)) }) {
			continue
		}
		out := map[ast.Var]ast.Value{}
		for name, v := range r.Bindings {
			if value, ok := v.(ast.Value); ok {
				out[ast.Var(name)] = value
			}
		}
		return out, nil
	}
	return nil, nil
}

// solveBudget is how long conditions of a clause may take, and solvePoint the name of such an
// evaluation in metrics.
const (
	solveBudget               = time.Second
	solvePoint  decision.Name = "engine/solve"
)

// used is a variable that no policy can name.
const used = "__used__"

// useDeclaredVars adds a use of the declared variables to conditions. It removes the declaration of a
// variable that occurs nowhere else.
func useDeclaredVars(conditions ast.Body) ast.Body {
	var out ast.Body
	var terms []*ast.Term
	for i, x := range conditions {
		x = x.Copy()
		if some, ok := x.Terms.(*ast.SomeDecl); ok && !declaresIn(some) {
			others := slices.Concat(conditions[:i], conditions[i+1:])
			some.Symbols = slices.DeleteFunc(some.Symbols, func(t *ast.Term) bool { return !mentionsVar(others, t.Value) })
			if len(some.Symbols) == 0 {
				continue
			}
		}
		for _, t := range DeclaredTerms(x) {
			ast.WalkVars(t, func(v ast.Var) bool {
				if !v.IsWildcard() {
					terms = append(terms, ast.NewTerm(v))
				}
				return false
			})
		}
		out = append(out, x)
	}
	if len(terms) > 0 || len(out) == 0 {
		out = append(out, ast.Equality.Expr(ast.VarTerm(used), ast.ArrayTerm(terms...)))
	}
	for i, x := range out {
		x.Index = i
	}
	return out
}

func mentionsVar(conditions ast.Body, name ast.Value) bool {
	found := false
	ast.WalkVars(conditions, func(v ast.Var) bool {
		found = found || v.Equal(name)
		return found
	})
	return found
}
