// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxPasses bounds how often all rules are read: each pass carries values through one more reference at least.
const maxPasses = 12

// analysis finds which facts compiled rules read, and what these are compared with. It does not
// evaluate: a value may be counted that no evaluation has, which makes a world more and hides none.
type analysis struct {
	in    reflect.Type
	rules []*ast.Rule
	data  ast.Value
	// own are the rules of the bundles, and those that these refer to.
	own map[*ast.Rule]bool
	// written are the rules of the bundles alone, and readers the others that refer to one of them.
	written, readers map[*ast.Rule]bool
	byPath           map[string][]*ast.Rule
	vars             map[*ast.Rule]map[ast.Var]*flow
	results          map[*ast.Rule]*flow

	facts    map[string]*fact
	hints    map[*ast.Rule]*ruleHints
	unvaried map[string]bool
	grown    bool
	final    bool // values do not grow any more, so facts are recorded
}

// ruleHints are conditions of a rule that are about one fact each, and the rules that it refers to.
type ruleHints struct {
	wants []want
	calls []call
}

// want is a condition on a fact.
type want struct {
	fact, op string
	value    *ast.Term
	negated  bool
}

// call is a reference to rules of one name, of which one should be true, or none if it is negated.
type call struct {
	rules   []*ast.Rule
	negated bool
}

// analyzeRules reads the rules that take part in the answers of a point. Those for which isOwn is true
// are rules of the bundles.
func analyzeRules(in reflect.Type, rules []*ast.Rule, data ast.Value, isOwn func(*ast.Rule) bool) *analysis {
	a := &analysis{
		in: in, data: data, own: map[*ast.Rule]bool{}, written: map[*ast.Rule]bool{}, readers: map[*ast.Rule]bool{}, byPath: map[string][]*ast.Rule{},
		vars: map[*ast.Rule]map[ast.Var]*flow{}, results: map[*ast.Rule]*flow{},
		facts: map[string]*fact{}, hints: map[*ast.Rule]*ruleHints{}, unvaried: map[string]bool{},
	}
	for _, r := range relevantRules(rules, isOwn) {
		a.addRule(r, isOwn(r))
	}
	for range maxPasses {
		a.grown = false
		a.readRules()
		if !a.grown {
			break
		}
	}
	if a.grown {
		a.unvaried["values that pass through many rules"] = true
	}
	a.final = true
	a.readRules()
	a.joinCompared()
	return a
}

func (a *analysis) addRule(r *ast.Rule, own bool) {
	for at := r; at != nil; at = at.Else {
		if a.results[at] != nil {
			continue
		}
		a.rules = append(a.rules, at)
		a.own[at], a.written[at] = own, own
		a.vars[at], a.results[at], a.hints[at] = map[ast.Var]*flow{}, newFlow(), &ruleHints{}
		path := rulePath(r)
		a.byPath[path] = append(a.byPath[path], at)
	}
}

// rulePath is the path of a rule up to its first computed step.
func rulePath(r *ast.Rule) string { return ruleRef(r).String() }

func ruleRef(r *ast.Rule) ast.Ref {
	return r.Module.Package.Path.Append(ast.StringTerm(string(r.Head.Ref()[0].Value.(ast.Var))))
}

func (a *analysis) readRules() {
	for _, r := range a.rules {
		v := visitor{analysis: a, rule: r}
		for _, arg := range r.Head.Args {
			v.termFlow(arg)
		}
		v.visitBody(r.Body, false)
		out := a.results[r]
		for _, t := range []*ast.Term{r.Head.Key, r.Head.Value} {
			if t != nil {
				v.growFlow(out, v.termFlow(t))
			}
		}
		for _, t := range r.Head.Ref()[1:] {
			v.growFlow(out, v.termFlow(t))
		}
	}
}

// visitor reads one rule.
type visitor struct {
	*analysis
	rule *ast.Rule
	// negated is true where the rule needs the condition to be false.
	negated bool
	// inText is true in what is only put into a text.
	inText bool
}

func (v visitor) growFlow(f, by *flow) {
	if f.mergeFlow(by) {
		v.grown = true
	}
}

func (v visitor) varFlow(name ast.Var) *flow {
	f := v.vars[v.rule][name]
	if f == nil {
		f = newFlow()
		v.vars[v.rule][name] = f
	}
	return f
}

func (v visitor) visitBody(b ast.Body, negated bool) {
	for _, x := range b {
		v.visitExpr(x, negated)
	}
}

func (v visitor) visitExpr(x *ast.Expr, negated bool) {
	negated = negated != x.Negated
	v.negated = negated
	switch t := x.Terms.(type) {
	case *ast.Term:
		f := v.termFlow(t)
		for name, p := range inOrder(f.facts) {
			v.noteFact(p).tested = true
			v.addWant(want{fact: name, op: "true", negated: negated})
		}
	case []*ast.Term:
		v.visitCall(t, negated)
	case *ast.SomeDecl:
		for _, s := range t.Symbols {
			if c, ok := s.Value.(ast.Call); ok {
				v.visitCall(c, negated)
			}
		}
	case *ast.Every:
		domain := v.termFlow(t.Domain)
		v.bindPattern(t.Value, v.elementFlow(domain))
		if t.Key != nil {
			v.bindPattern(t.Key, v.keyFlow(domain))
		}
		v.visitBody(t.Body, negated)
	case *ast.Not:
		v.visitBody(t.Body, !negated)
	case *ast.LogicalAnd:
		v.visitBody(t.Lhs, negated)
		v.visitBody(t.Rhs, negated)
	case *ast.LogicalOr:
		v.visitBody(t.Lhs, negated)
		v.visitBody(t.Rhs, negated)
	}
	for _, w := range x.With {
		v.termFlow(w.Value)
	}
}

func (v visitor) addWant(w want) {
	if !v.final {
		return
	}
	h := v.hints[v.rule]
	if !slices.ContainsFunc(h.wants, func(o want) bool {
		return o.fact == w.fact && o.op == w.op && o.negated == w.negated && (o.value == w.value || o.value != nil && w.value != nil && o.value.Equal(w.value))
	}) {
		h.wants = append(h.wants, w)
	}
}

// bindPattern makes what reaches a value reach the variables of a pattern.
func (v visitor) bindPattern(pattern *ast.Term, f *flow) {
	switch t := pattern.Value.(type) {
	case ast.Var:
		v.growFlow(v.varFlow(t), f)
	case *ast.Array:
		below := v.elementFlow(f)
		t.Foreach(func(e *ast.Term) { v.bindPattern(e, below) })
	case ast.Object:
		below := v.elementFlow(f)
		t.Foreach(func(_, e *ast.Term) { v.bindPattern(e, below) })
	}
}

// termFlow returns what may reach a term.
func (v visitor) termFlow(t *ast.Term) *flow {
	out := newFlow()
	switch x := t.Value.(type) {
	case ast.Var:
		return v.varFlow(x)
	case ast.Ref:
		return v.refFlow(x)
	case ast.Call:
		return v.callFlow(x, false)
	case *ast.ArrayComprehension:
		v.visitBody(x.Body, false)
		out.mergeFlow(v.termFlow(x.Term))
	case *ast.SetComprehension:
		v.visitBody(x.Body, false)
		out.mergeFlow(v.termFlow(x.Term))
	case *ast.ObjectComprehension:
		v.visitBody(x.Body, false)
		out.mergeFlow(v.termFlow(x.Key))
		out.mergeFlow(v.termFlow(x.Value))
	case *ast.Array, ast.Set, ast.Object:
		if t.IsGround() {
			out.addConstant(t)
			return out
		}
		forEachValue(t, func(k, e *ast.Term) {
			if _, object := t.Value.(ast.Object); object {
				out.mergeFlow(v.termFlow(k))
			}
			out.mergeFlow(v.termFlow(e))
		})
	default:
		if ast.IsConstant(t.Value) {
			out.addConstant(t)
		}
	}
	return out
}

// refFlow returns what may reach a reference.
func (v visitor) refFlow(ref ast.Ref) *flow {
	var f *flow
	rest := ref[1:]
	switch head := ref[0].Value.(type) {
	case ast.Var:
		switch {
		case head.Equal(ast.InputRootDocument.Value):
			f = newFlow()
			f.facts["input"] = factPath{}
		case head.Equal(ast.DefaultRootDocument.Value):
			f, rest = v.dataFlow(ref)
		default:
			f = v.varFlow(head)
		}
	default:
		f = v.termFlow(ref[0])
	}
	for _, key := range rest {
		var keys *flow
		if name, ok := key.Value.(ast.Var); ok {
			v.growFlow(v.varFlow(name), v.keyFlow(f))
			keys = v.varFlow(name)
		} else if !ast.IsConstant(key.Value) {
			keys = v.termFlow(key)
		}
		f = v.selectPart(f, key, keys)
	}
	for _, p := range f.facts {
		v.noteFact(p)
	}
	return f
}

// dataFlow returns the flow of a reference to rules or to data of bundles, and the steps below.
func (v visitor) dataFlow(ref ast.Ref) (*flow, ast.Ref) {
	f := newFlow()
	found := false
	used := 1
	var rules []*ast.Rule
	for _, all := range inOrder(v.byPath) {
		n, ok := matchesRulePath(ref, all[0])
		if !ok {
			continue
		}
		found, used = true, n
		for _, r := range all {
			rules = append(rules, r)
			f.mergeFlow(v.results[r])
			v.markUse(r)
		}
	}
	if found {
		if v.final {
			v.hints[v.rule].calls = append(v.hints[v.rule].calls, call{rules, v.negated})
		}
		return f, ref[min(used, len(ref)):]
	}
	at := v.data
	i := 1
	for ; i < len(ref); i++ {
		object, ok := at.(ast.Object)
		if !ok || !ast.IsConstant(ref[i].Value) {
			break
		}
		below := object.Get(ref[i])
		if below == nil {
			return f, nil
		}
		at = below.Value
	}
	f.addConstant(ast.NewTerm(at))
	return f, ref[i:]
}

// markUse notes that the rule refers to another one.
func (v visitor) markUse(r *ast.Rule) {
	if v.own[v.rule] && !v.own[r] {
		v.own[r], v.grown = true, true
	}
	if !v.own[v.rule] && v.written[r] && !v.readers[v.rule] {
		v.readers[v.rule], v.grown = true, true
	}
}

// matchesRulePath reports whether a reference may be to a rule, and how many of its steps lead there.
func matchesRulePath(ref ast.Ref, r *ast.Rule) (int, bool) {
	path := ruleRef(r)
	for i := 1; i < min(len(ref), len(path)); i++ {
		if ast.IsConstant(ref[i].Value) && !ref[i].Equal(path[i]) {
			return 0, false
		}
	}
	return len(path), true
}

// inOrder iterates over a map by its sorted keys, so that the same seed draws the same inputs.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
