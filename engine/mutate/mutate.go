// SPDX-License-Identifier: Apache-2.0

// Package mutate lists small changes of the rules of a bundle, for mutation testing: a change that makes no test of
// the bundle fail shows what the tests do not check.
package mutate

import (
	"bytes"
	"encoding/json"
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
//   - a condition is true, or is negated;
//   - a comparison is another one;
//   - a number, a string or a boolean that a rule uses is another one, unless it is in an object: objects are answers
//     and messages.
//
// Tests are not changed, nor is an else without braces, whose parts have no place of their own.
func ListMutants(b *bundle.Bundle) []Mutant {
	var out []Mutant
	for _, file := range slices.Sorted(maps.Keys(b.Modules)) {
		l := lister{file: file, source: b.Files[file], listed: map[Mutant]bool{}, removed: map[int]bool{}, unplaced: map[int]bool{}}
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
	listed       map[Mutant]bool
	removed      map[int]bool // offsets of rules
	// unplaced are the offsets that OPA gives to nodes that begin elsewhere: to what is negated that of its negation, and to all
	// nodes of an else that of the else.
	unplaced map[int]bool
}

// addMutant adds a mutant once, unless the location is not that of a text of the file: OPA makes some nodes itself.
func (l *lister) addMutant(loc *ast.Location, now, change string) {
	if !l.isPlaced(loc) {
		return
	}
	m := Mutant{File: l.file, Row: loc.Row, Col: loc.Col, Change: change, offset: loc.Offset, was: string(loc.Text), now: now}
	if !l.listed[m] {
		l.listed[m] = true
		l.mutants = append(l.mutants, m)
	}
}

func (l *lister) isPlaced(loc *ast.Location) bool {
	if loc == nil || len(loc.Text) == 0 || loc.Offset < 0 || loc.Offset+len(loc.Text) > len(l.source) {
		return false
	}
	return l.source[loc.Offset:loc.Offset+len(loc.Text)] == string(loc.Text)
}

func (l *lister) addRule(rule *ast.Rule) {
	if rule.Default {
		return
	}
	l.removeRule(rule)
	for otherwise := rule.Else; otherwise != nil; otherwise = otherwise.Else {
		if otherwise.Location != nil {
			l.unplaced[otherwise.Location.Offset] = true
		}
	}
	for _, term := range append([]*ast.Term{rule.Head.Key, rule.Head.Value}, rule.Head.Args...) {
		l.addTerm(term)
	}
	ast.WalkBodies(rule, func(body ast.Body) bool {
		for _, e := range body {
			l.addExpr(e)
		}
		return false
	})
}

// removeRule adds the mutant without the rule and the comments right above it: metadata of no rule is an error.
func (l *lister) removeRule(rule *ast.Rule) {
	loc := rule.Location
	if !l.isPlaced(loc) || l.removed[loc.Offset] {
		return
	}
	l.removed[loc.Offset] = true // rules that share a head have one location
	start := loc.Offset
	for start > 0 && l.source[start-1] == '\n' {
		line := strings.LastIndexByte(l.source[:start-1], '\n') + 1
		if !strings.HasPrefix(l.source[line:], "#") {
			break
		}
		start = line
	}
	l.mutants = append(l.mutants, Mutant{
		File: l.file, Row: loc.Row, Col: loc.Col, Change: "the rule " + rule.Head.Ref().String() + " is removed",
		offset: start, was: l.source[start : loc.Offset+len(loc.Text)],
	})
}

func (l *lister) addExpr(e *ast.Expr) {
	if isTrue(e) {
		return
	}
	_, declares := e.Terms.(*ast.SomeDecl)
	if !declares && !e.IsAssignment() && l.isPlaced(e.Location) && !l.unplaced[e.Location.Offset] {
		l.addCondition(e)
	}
	switch terms := e.Terms.(type) {
	case *ast.Term:
		l.addTerm(terms)
	case []*ast.Term:
		l.addComparison(terms[0])
		for _, operand := range terms[1:] {
			l.addTerm(operand)
		}
	case *ast.Every:
		l.addTerm(terms.Domain)
	case *ast.SomeDecl:
		for _, symbol := range terms.Symbols {
			l.addTerm(symbol)
		}
	}
}

// isTrue reports whether an expression is true, as is the body that OPA gives to a rule without one.
func isTrue(e *ast.Expr) bool {
	t, ok := e.Terms.(*ast.Term)
	return ok && t.Equal(ast.BooleanTerm(true))
}

// addCondition adds the mutants of a condition. Each of them uses the variables of the condition, since a variable that nothing uses
// is an error.
func (l *lister) addCondition(e *ast.Expr) {
	loc := e.Location
	text := string(loc.Text)
	negated := "not { " + text + " }"
	if e.IsNegated() {
		l.unplaced[loc.Offset] = true
		positive, ok := strings.CutPrefix(text, "not")
		if !ok {
			return
		}
		positive = strings.TrimSpace(positive)
		if inner, ok := strings.CutPrefix(positive, "{"); ok {
			positive = strings.TrimSuffix(inner, "}")
		}
		negated = "({1 | " + positive + "}) == {1}"
	}
	l.addMutant(loc, negated, fmt.Sprintf("the condition %s is negated", shortenText(text)))
	l.addMutant(loc, "({1 | "+text+"}) != {2}", fmt.Sprintf("the condition %s is true", shortenText(text)))
}

// otherComparison has, for the name of a comparison, the operator that differs from it in one case, or else its opposite.
var otherComparison = map[string]string{"equal": "!=", "neq": "==", "lt": "<=", "lte": "<", "gt": ">=", "gte": ">"}

func (l *lister) addComparison(operator *ast.Term) {
	if now, ok := otherComparison[operator.String()]; ok && operator.Location != nil && !l.unplaced[operator.Location.Offset] {
		l.addMutant(operator.Location, now, fmt.Sprintf("%s is %s", operator.Location.Text, now))
	}
}

// addTerm adds mutants of the comparisons and constants of a term. Objects are left as they are, and the bodies of comprehensions are
// walked by themselves.
func (l *lister) addTerm(term *ast.Term) {
	if term == nil {
		return
	}
	ast.WalkTerms(term, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Object, ast.Ref, *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.TemplateString:
			return true // paths of facts are no constants
		case ast.Call:
			l.addComparison(v[0])
		case ast.Boolean:
			l.addConstant(t, v.String(), fmt.Sprint(!bool(v)))
		case ast.Number:
			if n, ok := v.Int64(); ok {
				l.addConstant(t, v.String(), fmt.Sprint(n+1))
			}
		case ast.String:
			if now, err := json.Marshal(string(v) + "~"); err == nil && t.Location != nil && bytes.ContainsAny(t.Location.Text[:min(1, len(t.Location.Text))], "\"`") {
				l.addConstant(t, string(t.Location.Text), string(now))
			}
		}
		return false
	})
}

// addConstant adds the mutant of a constant, unless its location is that of something else.
func (l *lister) addConstant(t *ast.Term, text, now string) {
	if t.Location != nil && string(t.Location.Text) == text && !l.unplaced[t.Location.Offset] {
		l.addMutant(t.Location, now, fmt.Sprintf("%s is %s", shortenText(text), shortenText(now)))
	}
}

// maxShown is how many runes of a text a description has at most.
const maxShown = 60

// shortenText returns a text on one line, cut to maxShown runes.
func shortenText(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= maxShown {
		return string(runes)
	}
	return string(runes[:maxShown-1]) + "…"
}
