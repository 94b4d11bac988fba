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

// Clause is one way in which a rule of policies becomes true, as it was written.
type Clause struct {
	// Rule is what is known of the rule; its place is that of the clause.
	Rule Rule
	// Own is true when the rule has an id of its own, and not that of its package.
	Own bool
	// Name is that of the rule in its package, such as hold.
	Name string
	// Head is what the rule is when the conditions are true.
	Head *ast.Head
	// Conditions must all be true.
	Conditions ast.Body

	module *ast.Module
}

// SourceModule is the file that has the clause: what names in it mean is the same for all
// clauses of the file.
func (c Clause) SourceModule() *ast.Module { return c.module }

// LocalVars are the variables that arguments and conditions declare, at any depth.
// They hide rules and imports of their name.
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

// DeclaredTerms are the terms of a condition that it declares the variables of.
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

// SolveConditions finds values of variables for which conditions are true on a question;
// nil if there are none. They see what the clause sees. Conditions whose variables
// nothing binds are an error; those that declare what nothing uses are none, since
// what used it may have been left out. It ends with the context, and says nothing
// about the policies that are active.
func (s *Source) SolveConditions(ctx context.Context, c Clause, conditions ast.Body, input ast.Value) (_ map[ast.Var]ast.Value, err error) {
	defer func() { // as where decisions are made
		if p := recover(); p != nil {
			err = fmt.Errorf("solving conditions of %s: panic: %v", c.Rule.ID, p)
		}
	}()
	if err := ctx.Err(); err != nil { // compiling does not ask
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
	var rs rego.ResultSet
	ev := newEvaluation(
		&query{prepared: prepared, txn: s.view.txn, tenant: s.view.tenant, extended: true},
		input, &decisionRequest{name: solvePoint, budget: solveBudget * s.engine.patience, subject: s.subject, aside: true},
	)
	ev.results = func(all rego.ResultSet) { rs = all }
	// Only who waited to the end reads what the evaluation wrote.
	if outcome, err := s.engine.runEvaluation(ctx, ev); outcome != decision.Decided {
		return nil, fmt.Errorf("solving conditions of %s: %w", c.Rule.ID, err)
	}
	for _, r := range rs {
		// What a rule would end at, a query answers as false.
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

// solveBudget is how long conditions of a clause may take, and solvePoint what metrics
// call such an evaluation.
const (
	solveBudget               = time.Second
	solvePoint  decision.Name = "engine/solve"
)

// used is a variable that no policy can name.
const used = "__used__"

// useDeclaredVars adds to conditions a use of what they declare. A variable that is declared
// and occurs nowhere else is declared no more.
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
