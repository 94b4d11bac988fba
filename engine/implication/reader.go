// SPDX-License-Identifier: Apache-2.0

// Package implication says what the conditions of rules imply of one another and of the facts of a decision, by
// their structure: which cannot be true together, which one is true wherever others are.
//
// It knows comparisons, tests for presence, negations, membership of constants, and the types of facts.
// Everything else it knows by its text alone, or not at all. What it says is so for each input, since it
// says nothing where it does not know.
package implication

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
)

// Bounds of what is read.
const (
	maxConditions = 100      // of one rule
	maxInlined    = 4 << 10  // bytes of a value that takes the place of a name
	maxSize       = 64 << 10 // bytes of one rule, with all that is inlined
	maxDepth      = 3        // of helpers in helpers
)

// Reader reads rules of modules. A name that is a rule with one value and no conditions is replaced by that
// value. It is not safe for concurrent use.
type Reader struct {
	rules   map[string][]located
	values  map[*ast.Rule]sized
	bodies  map[*ast.Rule][]*ast.Expr
	reading map[*ast.Rule]bool
	// replaced is true if some rule is evaluated with other facts or other rules.
	replaced bool
}

// located is a rule and the module that it is in.
type located struct {
	module *ast.Module
	rule   *ast.Rule
}

// NewReader returns a reader of all modules of a bundle.
func NewReader(modules map[string]*ast.Module) *Reader {
	r := &Reader{rules: map[string][]located{}, values: map[*ast.Rule]sized{}, bodies: map[*ast.Rule][]*ast.Expr{}, reading: map[*ast.Rule]bool{}}
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		m := modules[file]
		ast.WalkWiths(m, func(*ast.With) bool { r.replaced = true; return true })
		for _, rule := range m.Rules {
			path := pathOfRule(m, rule)
			r.rules[path] = append(r.rules[path], located{m, rule})
		}
	}
	return r
}

// pathOfRule is the path of a rule up to its name.
func pathOfRule(m *ast.Module, rule *ast.Rule) string {
	return m.Package.Path.Append(ast.StringTerm(nameOfRule(rule))).String()
}

func nameOfRule(rule *ast.Rule) string {
	switch v := rule.Head.Ref()[0].Value.(type) {
	case ast.Var:
		return string(v)
	case ast.String:
		return string(v)
	}
	return ""
}

// Condition is a condition of a rule.
type Condition struct {
	// Text is the condition in its source, and Location where it is.
	Text     string
	Location *ast.Location
	// expr is the condition with names resolved; nil if nothing is known of it.
	expr *ast.Expr
	// terms are what must have a value, for what is no condition: the head of the rule.
	terms []*ast.Term
	// asks is true if the condition only asks, and gives no variable its value.
	asks bool
	// risky is true if its evaluation may fail.
	risky bool
}

// Body is what makes a rule true.
type Body struct {
	Conditions []Condition
	// Key and Value are those of the head, with names resolved; nil if there is none.
	Key, Value *ast.Term
	// bound are variables that arguments give a value.
	bound  ast.VarSet
	reader *Reader
}

// scope resolves the names in one rule.
type scope struct {
	*Reader
	module *ast.Module
	// locals are variables of the rule, and unclear those that are declared more than once.
	locals, unclear ast.VarSet
	aliases         map[ast.Var]sized
	prefix          string
	size            int
}

// ReadRule reads a rule, or one branch of a rule with an else. It reports false for a rule that is too large.
func (r *Reader) ReadRule(m *ast.Module, rule *ast.Rule) (*Body, bool) {
	return r.readBody(m, rule, "")
}

func (r *Reader) readBody(m *ast.Module, rule *ast.Rule, prefix string) (*Body, bool) {
	if len(rule.Body) > maxConditions {
		return nil, false
	}
	s := r.newScope(m, rule, prefix)
	out := &Body{reader: r, bound: ast.NewVarSet()}
	for _, arg := range rule.Head.Args {
		if resolved, ok := s.resolveTerm(arg); ok {
			out.bound.Update(resolved.Vars())
		}
	}
	for _, x := range rule.Body {
		if isTrueConstant(x) && len(rule.Body) == 1 {
			continue // OPA adds it to a rule without conditions
		}
		c := Condition{Text: textOf(x), Location: x.Location, risky: true}
		if resolved, ok := s.resolveExpr(x); ok {
			c.expr, c.risky = resolved, mayFail(resolved)
			c.asks = onlyAsks(resolved)
			s.addAlias(x, resolved)
		}
		out.Conditions = append(out.Conditions, c)
	}
	out.Key, out.Value = s.headTerm(rule.Head.Key), s.headTerm(rule.Head.Value)
	for _, t := range append([]*ast.Term{out.Key, out.Value}, s.headSteps(rule)...) {
		if t == nil {
			continue
		}
		for _, part := range definedParts(t) {
			out.Conditions = append(out.Conditions, Condition{Text: textOf(part), Location: headLocation(part, rule), terms: []*ast.Term{part}, risky: true})
		}
	}
	return out, s.size <= maxSize
}

func headLocation(t *ast.Term, rule *ast.Rule) *ast.Location {
	if t.Location != nil && t.Location.File == rule.Location.File {
		return t.Location
	}
	return rule.Location
}

func (s *scope) headTerm(t *ast.Term) *ast.Term {
	if t == nil {
		return nil
	}
	out, ok := s.resolveTerm(t)
	if !ok {
		return nil
	}
	return out
}

func (s *scope) headSteps(rule *ast.Rule) []*ast.Term {
	var out []*ast.Term
	for _, t := range rule.Head.Ref()[1:] {
		if resolved := s.headTerm(t); resolved != nil {
			out = append(out, resolved)
		}
	}
	return out
}

func (r *Reader) newScope(m *ast.Module, rule *ast.Rule, prefix string) *scope {
	s := &scope{Reader: r, module: m, locals: ast.NewVarSet(), unclear: ast.NewVarSet(), aliases: map[ast.Var]sized{}, prefix: prefix}
	declare := func(terms ...*ast.Term) {
		for _, t := range terms {
			if t == nil {
				continue
			}
			for v := range t.Vars() {
				if s.locals.Contains(v) {
					s.unclear.Add(v)
				}
				s.locals.Add(v)
			}
		}
	}
	declare(rule.Head.Args...)
	walkBody := ast.NewGenericVisitor(func(node any) bool {
		switch x := node.(type) {
		case *ast.Every:
			declare(x.Key, x.Value)
		case *ast.Expr:
			declare(engine.DeclaredTerms(x)...)
		}
		return false
	})
	walkBody.Walk(rule.Body)
	for _, t := range append([]*ast.Term{rule.Head.Key, rule.Head.Value}, rule.Head.Ref()[1:]...) {
		if t != nil {
			walkBody.Walk(t)
		}
	}
	return s
}

// addAlias notes that a variable is another name of a term.
func (s *scope) addAlias(x, resolved *ast.Expr) {
	if !x.IsAssignment() || len(x.Operands()) != 2 || len(x.With) > 0 || x.Negated {
		return
	}
	v, ok := x.Operand(0).Value.(ast.Var)
	t := resolved.Operand(1)
	if !ok || v.IsWildcard() || !isSubject(t) {
		return
	}
	if size := sizeOf(t); size <= maxInlined {
		s.aliases[v] = sized{t, size}
	}
}

func (s *scope) mentionsUnclear(x any) bool {
	found := false
	ast.WalkVars(x, func(v ast.Var) bool {
		found = found || s.unclear.Contains(v)
		return found
	})
	return found
}

// valueOf returns the value of a rule that has no conditions; nil if it has, or if the value is too large.
func (r *Reader) valueOf(l located) sized {
	rule := l.rule
	if known, ok := r.values[rule]; ok {
		return known
	}
	if r.reading[rule] || len(r.reading) > 10*maxDepth {
		return sized{}
	}
	simple := len(rule.Body) == 1 && isTrueConstant(rule.Body[0]) && len(rule.Head.Ref()) == 1
	if !simple || rule.Default || rule.Else != nil || len(rule.Head.Args) > 0 || rule.Head.Key != nil || rule.Head.Value == nil {
		r.values[rule] = sized{}
		return sized{}
	}
	r.reading[rule] = true
	defer delete(r.reading, rule)
	s := r.newScope(l.module, rule, pathOfRule(l.module, rule)+"$")
	var out sized
	if value, ok := s.resolveTerm(rule.Head.Value); ok && isSubject(value) {
		if size := sizeOf(value); size <= maxInlined {
			out = sized{value, size}
		}
	}
	r.values[rule] = out
	return out
}

func isTrueConstant(x *ast.Expr) bool {
	t, ok := x.Terms.(*ast.Term)
	return ok && !x.Negated && len(x.With) == 0 && t.Equal(ast.BooleanTerm(true))
}

// helperBodies returns the conditions of each definition of a rule that is only true or has no value; none if a
// term is no such rule.
func (r *Reader) helperBodies(t *ast.Term) [][]*ast.Expr {
	ref, ok := t.Value.(ast.Ref)
	if !ok || r.replaced || !ref.HasPrefix(ast.DefaultRootRef) {
		return nil
	}
	all := slices.Clone(r.rules[ref.String()])
	all = slices.DeleteFunc(all, func(l located) bool {
		return l.rule.Default && l.rule.Head.Value != nil && l.rule.Head.Value.Equal(ast.BooleanTerm(false))
	})
	var out [][]*ast.Expr
	for i, l := range all {
		h := l.rule.Head
		if l.rule.Default || l.rule.Else != nil || len(h.Args) > 0 || h.Key != nil || len(h.Ref()) > 1 || h.Value == nil || !h.Value.Equal(ast.BooleanTerm(true)) {
			return nil
		}
		body, known := r.bodies[l.rule]
		if !known {
			if r.reading[l.rule] {
				return nil
			}
			r.reading[l.rule] = true
			if b, ok := r.readBody(l.module, l.rule, fmt.Sprintf("%s#%d$", ref, i)); ok {
				body = b.listExprs()
			}
			delete(r.reading, l.rule)
			r.bodies[l.rule] = body
		}
		if body == nil {
			return nil
		}
		out = append(out, body)
	}
	return out
}

// listExprs returns the conditions of a body as expressions; one that is not known is one of which nothing follows.
func (b *Body) listExprs() []*ast.Expr {
	out := []*ast.Expr{}
	for _, c := range b.Conditions {
		switch {
		case c.expr != nil:
			out = append(out, c.expr)
		case c.terms == nil:
			out = append(out, &ast.Expr{Terms: &ast.SomeDecl{}})
		}
	}
	return out
}
