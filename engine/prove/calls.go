// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// comparisons are the operators that compare two values.
var comparisons = map[string]string{
	"eq": "==", "equal": "==", "neq": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=",
	"startswith": "startswith", "endswith": "endswith", "contains": "contains",
}

// visitCall reads a condition that calls an operator, a built-in function or a function of policies. Its
// last term may be the result.
func (v visitor) visitCall(terms []*ast.Term, negated bool) {
	name := terms[0].String()
	if op, ok := comparisons[name]; ok && len(terms) == 3 {
		if name == "eq" {
			v.unifyTerms(terms[1], terms[2])
		}
		v.compareFlows(v.termFlow(terms[1]), op, v.termFlow(terms[2]), negated)
		return
	}
	args := v.countArguments(terms)
	out := v.callFlow(terms[:args+1], negated)
	if len(terms) > args+1 {
		v.bindPattern(terms[args+1], out)
	} else {
		v.listUnvaried(out, newFlow())
		for fact, p := range inOrder(out.facts) { // a function whose result must be true
			v.noteFact(p).tested = true
			v.addWant(want{fact: fact, op: "true", negated: negated})
		}
	}
}

// countArguments returns how many arguments the function of a call has.
func (v visitor) countArguments(terms []*ast.Term) int {
	if b, ok := ast.BuiltinMap[terms[0].String()]; ok {
		return min(b.Decl.Arity(), len(terms)-1)
	}
	if ref, ok := terms[0].Value.(ast.Ref); ok {
		for _, all := range inOrder(v.byPath) {
			if _, match := matchesRulePath(ref, all[0]); match {
				return min(len(all[0].Head.Args), len(terms)-1)
			}
		}
	}
	return len(terms) - 1
}

func (v visitor) unifyTerms(a, b *ast.Term) {
	if isPattern(a) {
		v.bindPattern(a, v.termFlow(b))
	}
	if isPattern(b) {
		v.bindPattern(b, v.termFlow(a))
	}
}

func isPattern(t *ast.Term) bool {
	switch t.Value.(type) {
	case ast.Var:
		return true
	case *ast.Array, ast.Object:
		return !t.IsGround()
	}
	return false
}

// callFlow returns the flow of the result of a call, without the term of the result.
func (v visitor) callFlow(terms []*ast.Term, negated bool) *flow {
	name := terms[0].String()
	v.inText = v.inText || name == "sprintf"
	args := make([]*flow, 0, len(terms)-1)
	for _, t := range terms[1:] {
		args = append(args, v.termFlow(t))
	}
	if op, ok := comparisons[name]; ok && len(args) == 2 {
		v.compareFlows(args[0], op, args[1], negated)
		return newFlow()
	}
	if ref, ok := terms[0].Value.(ast.Ref); ok && ref.HasPrefix(ast.DefaultRootRef) {
		return v.functionFlow(ref, args)
	}
	if v.inText {
		out := newFlow() // nothing varies the words of a message
		out.addText(name, args)
		return out
	}
	if f := v.testFlow(name, args, negated); f != nil {
		return f
	}
	return v.valueFlow(name, terms, args)
}

// testFlow reads a call of a built-in function that is a condition; nil if it is none.
func (v visitor) testFlow(name string, args []*flow, negated bool) *flow {
	switch {
	case name == "internal.member_2" && len(args) == 2:
		v.compareFlows(args[0], "==", v.elementFlow(args[1]), negated)
	case name == "internal.member_3" && len(args) == 3:
		v.compareFlows(args[0], "==", v.keyFlow(args[2]), negated)
		v.compareFlows(args[1], "==", v.elementFlow(args[2]), negated)
	case name == "regex.match" && len(args) == 2:
		v.listUnvaried(args[0], args[1])
		for k, p := range args[1].allFacts() {
			for _, pattern := range args[0].consts {
				v.noteFact(p).addPattern(pattern)
				v.addWant(want{fact: k, op: "matches", value: pattern, negated: negated})
			}
		}
	default:
		return nil
	}
	return newFlow()
}

// valueFlow returns the flow of the result of a built-in function.
func (v visitor) valueFlow(name string, terms []*ast.Term, args []*flow) *flow {
	switch {
	case name == "object.get" && len(args) == 3:
		return v.objectGet(terms, args)
	case strings.HasPrefix(name, "time."):
		return v.timeFlow(name, args)
	case name == "count", name == "sum", name == "max", name == "min":
		var below []*flow
		for _, f := range args {
			below = append(below, f, v.elementFlow(f))
			for _, p := range inOrder(v.elementFlow(f).facts) {
				v.noteFact(p)
			}
		}
		return computeFlow(below...)
	case name == "to_number":
		out := computeFlow(args...)
		for _, p := range inOrder(out.sources) {
			v.noteFact(p).asNumber = true
		}
		out.asNumber = true
		return out
	}
	out := computeFlow(args...)
	addArithmetic(out, name, args)
	if !v.varyText(name, args) {
		out.addText(name, args)
	}
	return out
}

// objectGet returns the flow of object.get, whose key is one name or a list of them.
func (v visitor) objectGet(terms []*ast.Term, args []*flow) *flow {
	f := args[0]
	keys := []*ast.Term{terms[2]}
	if path, ok := terms[2].Value.(*ast.Array); ok {
		keys = nil
		path.Foreach(func(t *ast.Term) { keys = append(keys, t) })
	}
	for _, k := range keys {
		f = v.selectPart(f, k, v.termFlow(k))
	}
	for _, p := range inOrder(f.facts) {
		v.noteFact(p)
	}
	out := newFlow()
	out.mergeFlow(f)
	out.mergeFlow(args[2])
	return out
}

// functionFlow passes arguments to the definitions of a function, and returns their results.
func (v visitor) functionFlow(ref ast.Ref, args []*flow) *flow {
	out := newFlow()
	for _, all := range inOrder(v.byPath) {
		if _, ok := matchesRulePath(ref, all[0]); !ok {
			continue
		}
		for _, r := range all {
			v.markUse(r)
			callee := visitor{analysis: v.analysis, rule: r}
			for i, formal := range r.Head.Args {
				if i >= len(args) {
					break
				}
				if isPattern(formal) {
					callee.bindPattern(formal, args[i])
				} else {
					callee.compareFlows(args[i], "==", callee.termFlow(formal), false)
				}
			}
			out.mergeFlow(v.results[r])
		}
		if v.final {
			v.hints[v.rule].calls = append(v.hints[v.rule].calls, call{all, v.negated})
		}
	}
	return out
}

// timeFlow returns the flow of a function of time, whose argument is a time or a list that begins with one.
func (v visitor) timeFlow(name string, args []*flow) *flow {
	out := computeFlow(args...)
	out.clock, out.hours = true, name == "time.clock"
	if !slices.Contains([]string{"time.clock", "time.format", "time.weekday"}, name) {
		out.addText(name, args)
	}
	for _, p := range inOrder(out.sources) {
		f := v.noteFact(p)
		f.clock = true
		for _, t := range out.consts {
			forEachValue(t, func(_, c *ast.Term) { f.addConstant(c) })
		}
	}
	return out
}

// addArithmetic adds the results of a calculation with constants.
func addArithmetic(out *flow, name string, args []*flow) {
	if len(args) != 2 {
		return
	}
	for _, x := range args[0].consts {
		for _, y := range args[1].consts {
			a, ok := numberOf(x)
			b, ok2 := numberOf(y)
			if !ok || !ok2 {
				continue
			}
			switch name {
			case "plus":
				out.addConstant(numberTerm(a + b))
			case "minus":
				out.addConstant(numberTerm(a - b))
			case "mul":
				out.addConstant(numberTerm(a * b))
			case "div":
				if b != 0 {
					out.addConstant(numberTerm(a / b))
				}
			}
		}
	}
}
