// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// fact is a part of the input that rules read.
type fact struct {
	path factPath
	// read is true if rules of the bundles read it, or rules that use what these say.
	read bool
	// inText is true if rules of the bundles put it into a text, where only its absence matters.
	inText bool
	// tested is true if a rule asks whether there is such a fact.
	tested bool
	// asNumber is true for a text that is read as a number, and clock for a time.
	asNumber, clock bool
	// cased is true for a text whose case rules change, and spaced for one whose space they trim.
	cased, spaced bool
	constants     map[string]*ast.Term
	patterns      map[string]*ast.Term // regular expressions that it is matched with
	peers         map[string]bool      // facts that it is compared with
}

func (f *fact) addConstant(t *ast.Term) {
	if len(f.constants) < maxConstants {
		f.constants[t.String()] = t
	}
}

func (f *fact) addPattern(t *ast.Term) { f.patterns[t.String()] = t }

// noteFact returns what is known of a fact that the rule reads.
func (v visitor) noteFact(p factPath) *fact {
	name := p.String()
	f := v.facts[name]
	if f == nil {
		f = &fact{path: p, constants: map[string]*ast.Term{}, patterns: map[string]*ast.Term{}, peers: map[string]bool{}}
		v.facts[name] = f
	}
	if v.final && (v.own[v.rule] || v.readers[v.rule]) {
		f.read, f.inText = f.read || !v.inText, f.inText || v.inText
	}
	return f
}

// isVaried reports whether the fact is varied: rules read it, or put it into a text although it may be absent.
func (f *fact) isVaried(in reflect.Type) bool {
	return f.read || f.inText && f.path.isOptional(in)
}

// compareFlows notes a comparison of what reaches two terms.
func (v visitor) compareFlows(a *flow, op string, b *flow, negated bool) {
	flipped := map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}
	v.compareWith(a, op, b, negated)
	if other, ok := flipped[op]; ok {
		op = other
	}
	v.compareWith(b, op, a, negated)
	v.listUnvaried(a, b)
	for x, p := range a.allFacts() {
		for y, q := range b.allFacts() {
			if x != y {
				v.noteFact(p).peers[y] = true
				v.noteFact(q).peers[x] = true
			}
		}
	}
}

// compareWith notes the constants that the facts of a flow are compared with.
func (v visitor) compareWith(a *flow, op string, b *flow, negated bool) {
	for name, p := range a.allFacts() {
		f := v.noteFact(p)
		f.clock = f.clock || a.clock
		for _, c := range b.consts {
			if !isScalar(c) {
				continue
			}
			f.addConstant(c)
			if hour, ok := hourOf(c); ok && a.hours {
				f.addConstant(hour)
			}
			if _, direct := a.facts[name]; direct {
				v.addWant(want{fact: name, op: op, value: c, negated: negated})
			}
		}
	}
}

func isScalar(t *ast.Term) bool {
	switch t.Value.(type) {
	case ast.String, ast.Number, ast.Boolean, ast.Null:
		return true
	}
	return false
}

// joinCompared gives facts that are compared with each other the constants of both, and reads them all.
func (a *analysis) joinCompared() {
	for range maxPasses {
		changed := false
		for _, name := range slices.Sorted(maps.Keys(a.facts)) {
			f := a.facts[name]
			for other := range inOrder(f.peers) {
				o := a.facts[other]
				if o == nil {
					continue
				}
				before := len(f.constants)
				for _, t := range o.constants {
					f.addConstant(t)
				}
				changed = changed || len(f.constants) != before
			}
		}
		if !changed {
			return
		}
	}
}

func numberOf(t *ast.Term) (float64, bool) {
	n, ok := t.Value.(ast.Number)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	return f, err == nil
}

func numberTerm(f float64) *ast.Term { return ast.NumberTerm(json.Number(formatNumber(f))) }

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
