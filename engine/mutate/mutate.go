// SPDX-License-Identifier: Apache-2.0

// Package mutate lists small changes of the rules of a bundle, for mutation testing: a change that makes no test of
// the bundle fail shows what the tests do not check.
package mutate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/bundle"
)

// Mutant is a bundle with one change of a rule.
type Mutant struct {
	// File is the path of the changed file in the bundle; Row and Col are the place of the change, from 1.
	File string `json:"file"`
	Row  int    `json:"row"`
	Col  int    `json:"col"`
	// Change describes the change in one line.
	Change string `json:"change"`

	offset int    // of the changed text, in bytes
	was    string // the changed text
	now    string // the text in its place
}

// ListMutants returns the mutants of a bundle, by their places. These are its changes:
//
//   - a rule is removed, unless it is a default;
//   - a condition of a body is true, or is negated;
//   - a comparison is another one;
//   - a number, a string or a boolean that a rule uses is another one, unless it is in an object: objects are answers
//     and messages.
//
// Tests are not changed, nor are the conditions of an else.
func ListMutants(b *bundle.Bundle) []Mutant {
	var out []Mutant
	for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
		l := lister{file: file, source: b.Files[file]}
		for _, rule := range b.Modules[file].Rules {
			l.addRule(rule)
		}
		slices.SortStableFunc(l.mutants, func(a, b Mutant) int { return a.offset - b.offset })
		out = append(out, l.mutants...)
	}
	return out
}

// MutateBundle returns the bundle with the change of a mutant. The error is one of the parser: not each change is Rego.
func (m Mutant) MutateBundle(b *bundle.Bundle) (*bundle.Bundle, error) {
	source, end := b.Files[m.File], m.offset+len(m.was)
	if m.offset < 0 || end > len(source) || source[m.offset:end] != m.was {
		return nil, fmt.Errorf("mutating bundle %s: %s has another text at %d:%d", b.Name, m.File, m.Row, m.Col)
	}
	files := maps.Clone(b.Files)
	files[m.File] = source[:m.offset] + m.now + source[end:]
	mutated, err := bundle.FromFiles(b.Name, files, func(o *bundle.Bundle) {
		o.Kind, o.Namespace, o.Canary = b.Kind, b.Namespace, b.Canary
	})
	if err != nil {
		return nil, fmt.Errorf("mutating bundle %s: %w", b.Name, err)
	}
	return mutated, nil
}

// lister lists the mutants of one file.
type lister struct {
	file, source string
	mutants      []Mutant
}

// addMutant adds a mutant, unless the location is not that of the node: OPA makes some nodes itself, and gives those of an else
// the location of the else.
func (l *lister) addMutant(loc *ast.Location, now, change string) {
	if loc == nil || len(loc.Text) == 0 || bytes.HasPrefix(loc.Text, []byte("else")) || loc.Offset+len(loc.Text) > len(l.source) || l.source[loc.Offset:loc.Offset+len(loc.Text)] != string(loc.Text) {
		return
	}
	l.mutants = append(l.mutants, Mutant{File: l.file, Row: loc.Row, Col: loc.Col, Change: change, offset: loc.Offset, was: string(loc.Text), now: now})
}

func (l *lister) addRule(rule *ast.Rule) {
	if rule.Default {
		return
	}
	if rule.Location != nil {
		l.addMutant(rule.Location, "", "the rule "+rule.Head.Name.String()+" is removed")
	}
	if rule.Head.Value != nil {
		l.addConstants(rule.Head.Value)
	}
	for ; rule != nil; rule = rule.Else {
		ast.WalkBodies(rule.Body, func(body ast.Body) bool {
			for _, e := range body {
				l.addExpr(e)
			}
			return false
		})
	}
}

func (l *lister) addExpr(e *ast.Expr) {
	if _, declared := e.Terms.(*ast.SomeDecl); declared || e.IsAssignment() || isTrue(e) {
		return
	}
	if e.Location != nil {
		l.addCondition(e, e.Location)
	}
	if !e.IsCall() {
		return
	}
	operator := e.OperatorTerm().Location
	if now, ok := otherComparison[e.Operator().String()]; ok && operator != nil {
		l.addMutant(operator, now, fmt.Sprintf("%s is %s in %s", operator.Text, now, shorten(string(e.Location.Text))))
	}
	for _, operand := range e.Operands() {
		l.addConstants(operand)
	}
}

// isTrue reports whether an expression is true, as is the body that OPA gives to a rule without one.
func isTrue(e *ast.Expr) bool {
	t, ok := e.Terms.(*ast.Term)
	return ok && t.Equal(ast.BooleanTerm(true))
}

func (l *lister) addCondition(e *ast.Expr, loc *ast.Location) {
	text := string(loc.Text)
	positive, hasNot := cutNot(text)
	switch _, every := e.Terms.(*ast.Every); {
	case e.IsNegated() && hasNot:
		l.addMutant(loc, positive, fmt.Sprintf("the condition %s is negated", shorten(text)))
	case hasNot: // the location of what is negated is that of the whole
		return
	case !every:
		l.addMutant(loc, "not "+text, fmt.Sprintf("the condition %s is negated", shorten(text)))
	}
	l.addMutant(loc, "true", fmt.Sprintf("the condition %s is true", shorten(text)))
}

// cutNot returns a condition without the word not before it, and whether it had one.
func cutNot(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, "not")
	positive := strings.TrimSpace(rest)
	return positive, ok && positive != "" && (rest != positive || positive[0] == '(' || positive[0] == '{')
}

// otherComparison has, for the name of a comparison, the operator that differs from it in one case, or else its opposite.
var otherComparison = map[string]string{"equal": "!=", "neq": "==", "lt": "<=", "lte": "<", "gt": ">=", "gte": ">"}

// addConstants adds mutants of the constants of a term, but of no object in it.
func (l *lister) addConstants(term *ast.Term) {
	ast.WalkTerms(term, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Object, ast.Ref, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
			return true // paths of facts are no constants, and bodies of comprehensions are walked by themselves
		case ast.Boolean:
			l.addConstant(t, fmt.Sprint(!bool(v)))
		case ast.Number:
			if n, ok := v.Int64(); ok {
				l.addConstant(t, fmt.Sprint(n+1))
			}
		case ast.String:
			l.addConstant(t, fmt.Sprintf("%q", string(v)+"~"))
		}
		return false
	})
}

func (l *lister) addConstant(t *ast.Term, now string) {
	if t.Location != nil {
		l.addMutant(t.Location, now, fmt.Sprintf("%s is %s", shorten(string(t.Location.Text)), shorten(now)))
	}
}

// maxShown is how many runes of a text a description has at most.
const maxShown = 60

// shorten returns a text on one line, cut to maxShown runes.
func shorten(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= maxShown {
		return string(runes)
	}
	return string(runes[:maxShown-1]) + "…"
}
