// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/implication"
)

// A minute is how far rounds may be apart, at most, for a text that changes from one to the next.
const minute = 60e9 // in nanoseconds

// checkMoving reports the parts of reasons, and keys, that pass with the time.
func (c *checker) checkMoving(rule *ast.Rule, body *implication.Body) {
	for _, t := range []*ast.Term{body.Key, body.Value} {
		if t != nil {
			c.checkReasons(rule, t)
		}
	}
}

// checkReasons reports moving reasons in the objects of a value.
func (c *checker) checkReasons(rule *ast.Rule, t *ast.Term) {
	ast.WalkTerms(t, func(t *ast.Term) bool {
		fields, ok := fieldsOf(t)
		if !ok || fields["reason"] == nil || fields["message"] == nil {
			return false
		}
		for _, name := range []string{"rule", "reason", "message", "pod", "target"} {
			if v := fields[name]; v != nil && isMoving(v) {
				at := v.Location
				if at == nil || at.File != rule.Location.File {
					at = rule.Location
				}
				c.reportFinding(EachRound, at, "%s has the time in it, so it is another one in each round, and so is the condition or event that shows it: say when it ends instead, in until", name)
			}
		}
		return false
	})
}

// isMoving reports whether a text or a number is certainly another one a minute later.
func isMoving(t *ast.Term) bool {
	rate, ok := rateOf(t, 0)
	return ok && math.Abs(rate)*minute >= 1
}

// maxRateDepth bounds how deep calls are in each other.
const maxRateDepth = 20

// rateOf returns by how much a number grows in a nanosecond, or how often a text changes in one; false if it
// does not change, or if that is not known.
func rateOf(t *ast.Term, depth int) (float64, bool) {
	if depth > maxRateDepth {
		return 0, false
	}
	switch x := t.Value.(type) {
	case ast.Ref:
		if isNow(x) {
			return 1, true
		}
	case ast.Call:
		return rateOfCall(x, depth)
	case *ast.Array:
		return fastestRate(x, depth)
	case *ast.TemplateString:
		return rateOfTemplate(x, depth)
	}
	return 0, false
}

// isNow reports whether a fact is the time of the decision: the field now of an input, or of the question in it.
func isNow(ref ast.Ref) bool {
	if !ref.HasPrefix(ast.InputRootRef) || !ref.IsGround() {
		return false
	}
	last, _ := ref[len(ref)-1].Value.(ast.String)
	return last == "now" && len(ref) <= 3
}

func fastestRate(list *ast.Array, depth int) (float64, bool) {
	best, found := 0.0, false
	list.Foreach(func(e *ast.Term) {
		if rate, ok := rateOf(e, depth+1); ok && math.Abs(rate) >= best {
			best, found = math.Abs(rate), true
		}
	})
	return best, found
}

func rateOfTemplate(t *ast.TemplateString, depth int) (float64, bool) {
	for _, part := range t.Parts {
		x, ok := part.(*ast.Expr)
		if !ok {
			continue
		}
		value, ok := x.Terms.(*ast.Term)
		if call, isCall := x.Terms.([]*ast.Term); isCall {
			value, ok = ast.NewTerm(ast.Call(call)), true
		}
		if !ok {
			continue
		}
		if rate, ok := rateOf(value, depth+1); ok && math.Abs(rate)*minute >= 1 {
			return rate, true
		}
	}
	return 0, false
}

func rateOfCall(call ast.Call, depth int) (float64, bool) {
	name, args := call[0].String(), call[1:]
	rates, moves := make([]float64, len(args)), make([]bool, len(args))
	for i, arg := range args {
		rates[i], moves[i] = rateOf(arg, depth+1)
	}
	switch name {
	case "plus", "minus": // two that move may stand still together
		if moves[0] == moves[1] {
			return 0, false
		}
		return rates[0] + rates[1], true
	case "mul":
		if moves[1] { // either factor may be the number
			return rateOfProduct(rates[1], moves[1], args[0], moves[0])
		}
		return rateOfProduct(rates[0], moves[0], args[1], moves[1])
	case "div":
		by, _ := numberOf(args[1])
		if by == 0 {
			return 0, false
		}
		return rates[0] / by, moves[0] && !moves[1]
	case "floor", "ceil", "round", "format_int":
		return rates[0], moves[0] && math.Abs(rates[0])*minute >= 1
	case "sprintf":
		return rates[1], moves[1] && hasPlainVerbs(args) && math.Abs(rates[1])*minute >= 1
	case "concat":
		return rates[1], moves[1]
	case "time.format":
		return 1 / minute, showsMinutes(args[0], rates[0], moves[0])
	case "time.add_date":
		return rates[0], moves[0]
	}
	return 0, false
}

// rateOfProduct returns the rate of a value that moves times a number.
func rateOfProduct(rate float64, moves bool, number *ast.Term, numberMoves bool) (float64, bool) {
	by, ok := numberOf(number)
	return rate * by, ok && by != 0 && moves && !numberMoves
}

// hasPlainVerbs reports whether a format shows all digits before the point of what it is given.
func hasPlainVerbs(args []*ast.Term) bool {
	format, ok := args[0].Value.(ast.String)
	list, isList := args[1].Value.(*ast.Array)
	if !ok || !isList {
		return false
	}
	text := strings.ReplaceAll(string(format), "%%", "")
	verbs := 0
	for i, r := range text {
		if r != '%' {
			continue
		}
		verbs++
		rest := strings.TrimLeft(text[i+1:], "+-# 0123456789.")
		if rest == "" || !strings.ContainsRune("vdsf", rune(rest[0])) || strings.HasPrefix(text[i+1:], ".") && rest[0] == 's' {
			return false
		}
	}
	return verbs == list.Len()
}

// showsMinutes reports whether time.format shows the minutes of the time of the decision.
func showsMinutes(arg *ast.Term, rate float64, moves bool) bool {
	list, ok := arg.Value.(*ast.Array)
	if !ok {
		return moves && rate == 1
	}
	if !moves || math.Abs(rate) != 1 || list.Len() == 0 {
		return false
	}
	if list.Len() < 3 {
		return true // the form that it has without a layout has the nanoseconds
	}
	layout, ok := list.Elem(2).Value.(ast.String)
	return ok && (strings.Contains(string(layout), "04") || slices.Contains([]string{"RFC3339", "RFC3339Nano", "RFC1123", "RFC822", "ANSIC", "UnixDate", "Kitchen"}, string(layout)))
}

func numberOf(t *ast.Term) (float64, bool) {
	n, ok := t.Value.(ast.Number)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	return f, err == nil
}
