// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"maps"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxConstants bounds the constants that are remembered of one term.
const maxConstants = 64

// flow is what may reach a term: facts of the input, facts that it is computed from, and constants.
type flow struct {
	facts   map[string]factPath
	sources map[string]factPath
	consts  map[string]*ast.Term
	// asNumber is true for a number that was read from a text, and clock for what is computed from a time.
	asNumber, clock bool
	// hours is true for a part of time.clock, and capped if there were more than maxConstants.
	hours, capped bool
	// texts are calls whose result it is, and of which nothing says for which facts it is what.
	texts map[string]bool
}

func newFlow() *flow {
	return &flow{facts: map[string]factPath{}, sources: map[string]factPath{}, consts: map[string]*ast.Term{}, texts: map[string]bool{}}
}

func (f *flow) addConstant(t *ast.Term) {
	f.addNamed(t.String(), ast.NewTerm(t.Value))
}

func (f *flow) addNamed(name string, t *ast.Term) {
	if _, known := f.consts[name]; known {
		return
	}
	if len(f.consts) >= maxConstants {
		f.capped = true
		return
	}
	f.consts[name] = t
}

// addConstants adds the constants of another flow, in an order that is the same each time.
func (f *flow) addConstants(o *flow) {
	if len(o.consts) > 0 {
		for k, t := range inOrder(o.consts) {
			f.addNamed(k, t)
		}
	}
}

// inheritOrigin adds what is true of a value that is a part of another one.
func (f *flow) inheritOrigin(o *flow) {
	maps.Copy(f.sources, o.sources)
	maps.Copy(f.texts, o.texts)
	f.asNumber, f.clock = f.asNumber || o.asNumber, f.clock || o.clock
	f.hours, f.capped = f.hours || o.hours, f.capped || o.capped
}

// mergeFlow adds what reaches another term. It reports whether anything is new.
func (f *flow) mergeFlow(o *flow) bool {
	if o == nil {
		return false
	}
	before := f.countEntries()
	maps.Copy(f.facts, o.facts)
	f.addConstants(o)
	f.inheritOrigin(o)
	return f.countEntries() != before
}

func (f *flow) countEntries() int {
	n := len(f.facts) + len(f.sources) + len(f.consts) + len(f.texts)
	for _, is := range []bool{f.asNumber, f.clock, f.hours, f.capped} {
		if is {
			n++
		}
	}
	return n
}

// computeFlow returns the flow of a value that is computed from terms.
func computeFlow(from ...*flow) *flow {
	out := newFlow()
	for _, f := range from {
		maps.Copy(out.sources, f.facts)
		out.addConstants(f)
		out.inheritOrigin(f)
	}
	return out
}

// allFacts returns the facts of a flow and those that it is computed from.
func (f *flow) allFacts() map[string]factPath {
	out := maps.Clone(f.facts)
	maps.Copy(out, f.sources)
	return out
}

// elementFlow returns what may be an element of a collection.
func (a *analysis) elementFlow(of *flow) *flow {
	out := newFlow()
	out.inheritOrigin(of)
	for k, p := range inOrder(of.facts) {
		if below := p.appendStep(step{each: true}); !p.key && below.resolveType(a.in) != nil {
			out.facts[below.String()] = below
		} else {
			out.facts[k] = p // an element of a collection that rules made
		}
	}
	for _, t := range of.consts {
		forEachValue(t, func(_, v *ast.Term) { out.addConstant(v) })
	}
	return out
}

// keyFlow returns what may be a key of a collection.
func (a *analysis) keyFlow(of *flow) *flow {
	out := newFlow()
	out.inheritOrigin(of)
	for k, p := range inOrder(of.facts) {
		below := p
		below.key = true
		switch {
		case below.resolveType(a.in) != nil:
			out.facts[below.String()] = below
		case p.appendStep(step{each: true}).resolveType(a.in) == nil:
			out.facts[k] = p
		}
	}
	for _, t := range of.consts {
		forEachValue(t, func(k, _ *ast.Term) { out.addConstant(k) })
	}
	return out
}

// forEachValue calls f with the keys and values of a constant; a constant that is no collection is its own.
func forEachValue(t *ast.Term, f func(k, v *ast.Term)) {
	switch x := t.Value.(type) {
	case *ast.Array:
		for i := range x.Len() {
			f(ast.IntNumberTerm(i), x.Elem(i))
		}
	case ast.Set:
		x.Foreach(func(e *ast.Term) { f(e, e) })
	case ast.Object:
		x.Foreach(f)
	default:
		f(t, t)
	}
}

// selectPart returns what a step of a reference selects.
func (a *analysis) selectPart(of *flow, key *ast.Term, keys *flow) *flow {
	out := newFlow()
	out.inheritOrigin(of)
	names := map[string]bool{}
	open := true // the key may be any
	if name, ok := key.Value.(ast.String); ok {
		names[string(name)], open = true, false
	} else if keys != nil {
		for _, t := range keys.consts {
			if name, ok := t.Value.(ast.String); ok {
				names[string(name)] = true
			}
		}
		open = len(names) == 0 || len(keys.facts)+len(keys.sources) > 0
	}
	for k, p := range inOrder(of.facts) {
		added := false
		add := func(s step) {
			if below := p.appendStep(s); !p.key && below.resolveType(a.in) != nil {
				out.facts[below.String()], added = below, true
			}
		}
		for name := range inOrder(names) {
			add(step{name: name})
		}
		if open || !added {
			add(step{each: true})
		}
		if !added && len(p.steps) > 0 {
			out.facts[k] = p // a part of a collection that rules made
		} else if !added && open {
			a.unvaried["input[...], with a computed key"] = true
		}
	}
	for _, t := range of.consts {
		forEachValue(t, func(k, v *ast.Term) {
			name, isName := k.Value.(ast.String)
			if open || isName && names[string(name)] {
				out.addConstant(v)
			}
		})
	}
	return out
}
