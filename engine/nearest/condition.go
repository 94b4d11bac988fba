// SPDX-License-Identifier: Apache-2.0

package nearest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
)

// byDistance sorts the nearest conditions first, and those without a distance last.
func byDistance(a, b Condition) int { return cmp.Compare(minDistance(a), minDistance(b)) }

// minDistance is the distance of a condition, or that of the nearest one below it.
func minDistance(c Condition) float64 {
	if c.Distance != nil {
		return *c.Distance
	}
	out := math.Inf(1)
	for _, h := range c.Helpers {
		for _, below := range h.Conditions {
			out = min(out, minDistance(below))
		}
	}
	return out
}

// isQuestion reports whether an expression can be true or false, and does not only assign a name.
func isQuestion(x *ast.Expr) bool {
	if _, ok := x.Terms.(*ast.SomeDecl); ok {
		return false
	}
	return !x.IsAssignment() && !(x.IsEquality() && len(x.Operands()) == 2 && slices.ContainsFunc(x.Operands(), func(t *ast.Term) bool { _, ok := t.Value.(ast.Var); return ok }))
}

// stripNot returns a condition without its not, and whether it had one. A not of several conditions
// stays as it is.
func stripNot(x *ast.Expr) (inner *ast.Expr, negated bool) {
	if not, ok := x.Terms.(*ast.Not); ok && len(not.Body) == 1 {
		inner, negated := stripNot(not.Body[0])
		return inner, !negated
	}
	if x.Negated {
		return x.Complement(), true
	}
	return x, false
}

// hasWithModifier reports whether a condition is evaluated on other facts.
func hasWithModifier(x *ast.Expr) bool {
	found := false
	ast.WalkWiths(x, func(*ast.With) bool { found = true; return true })
	return found
}

// Names of the two sides of a comparison, which no policy can use.
const left, right = "__left__", "__right__"

// describeCondition describes a condition with its values. The others are true.
func (f *finder) describeCondition(fr *frame, l *condition, others ast.Body, holds bool) Condition {
	out := Condition{Text: l.text}
	if hasWithModifier(l.expr) {
		return out
	}
	x, negated := stripNot(l.expr)
	as, turned, ok := parseComparison(x)
	if !ok {
		out.Why = f.describeFacts(fr, x, others)
		return out
	}
	a, b := x.Operands()[0], x.Operands()[1]
	if ast.IsConstant(a.Value) { // the fact goes first
		a, b, as = b, a, turned
	}
	if negated {
		as = comparison{as.otherwise, as.when}
	}
	got := f.solveConditions(fr, append(slices.Clone(others), ast.Equality.Expr(ast.VarTerm(left), a), ast.Equality.Expr(ast.VarTerm(right), b)))
	if got[left] == nil || got[right] == nil {
		out.Why = f.describeFacts(fr, x, others)
		return out
	}
	name, is, than := textOf(a), got[left], got[right]
	verb := "and would have to be " + as.when
	if holds {
		verb = "and this ends when it is " + as.otherwise
	}
	out.Why = fmt.Sprintf("%s is %s, %s %s", name, formatValue(is), verb, formatValue(than))
	n, ok1 := numberValue(is)
	m, ok2 := numberValue(than)
	if ok1 && ok2 {
		d := math.Abs(n-m) / math.Max(1, math.Abs(m))
		out.Distance = &d
	}
	return out
}

// describeFacts returns the values that a condition refers to, except a helper that is the whole
// condition, and functions that it calls.
func (f *finder) describeFacts(fr *frame, x *ast.Expr, others ast.Body) string {
	var out []string
	for _, t := range termsOf(x) {
		walkReferences(t, func(t *ast.Term) bool {
			if _, call := t.Value.(ast.Call); call || x.Terms == any(t) && f.isHelper(fr, t) {
				return true
			}
			if ref, ok := t.Value.(ast.Ref); ok && len(ref) == 1 {
				return true // it refers to the whole input, or to all data
			}
			if v, ok := t.Value.(ast.Var); ok && (v.IsWildcard() || strings.HasPrefix(string(v), "__")) {
				return true
			}
			name, value := f.describeReference(fr, t, others), "not there"
			switch got, err := f.trySolve(fr, append(slices.Clone(others), ast.Equality.Expr(ast.VarTerm(left), t))); {
			case err != nil || got != nil && got[left] == nil:
				return true // nothing binds it
			case got != nil:
				value = formatValue(got[left])
			}
			if line := name + " is " + value; !slices.Contains(out, line) {
				out = append(out, line)
			}
			return false // the name contains its path
		})
	}
	return strings.Join(out, ", ")
}

// describeReference returns a reference with the values of the variables in its path.
func (f *finder) describeReference(fr *frame, t *ast.Term, others ast.Body) string {
	ref, ok := t.Value.(ast.Ref)
	if !ok {
		return t.String()
	}
	ref = slices.Clone(ref)
	for i, x := range ref[1:] {
		if v := f.constantTerm(fr, x, others); v != nil {
			ref[i+1] = v
		}
	}
	if fact := fr.factPath(ast.NewTerm(ref)); fact != nil {
		ref = fact
	}
	return truncateText(ref.String())
}

// comparison is an operator in words: for when it is true of a fact, and for when it is not.
type comparison struct{ when, otherwise string }

// parseComparison returns the comparison of an expression, and the one with swapped operands; false if
// it compares nothing.
func parseComparison(x *ast.Expr) (as, turned comparison, ok bool) {
	more, less := comparison{"more than", "at most"}, comparison{"less than", "at least"}
	if x.Negated || !x.IsCall() || len(x.Operands()) != 2 {
		return as, turned, false
	}
	not := func(c comparison) comparison { return comparison{c.otherwise, c.when} }
	switch same := (comparison{"equal to", "other than"}); x.Operator().String() {
	case ast.GreaterThan.Name:
		return more, less, true
	case ast.LessThan.Name:
		return less, more, true
	case ast.GreaterThanEq.Name:
		return not(less), not(more), true
	case ast.LessThanEq.Name:
		return not(more), not(less), true
	case ast.Equal.Name:
		return same, same, true
	case ast.NotEqual.Name:
		return not(same), not(same), true
	case ast.Member.Name:
		return comparison{"one of", "none of"}, comparison{"with", "without"}, true
	}
	return as, turned, false
}

func numberValue(v ast.Value) (float64, bool) {
	n, ok := v.(ast.Number)
	if !ok {
		return 0, false
	}
	x, err := json.Number(n).Float64()
	return x, err == nil
}

// Between these, numbers are times in nanoseconds: the years 2001 to 2096.
const firstTime, lastTime = 1e18, 4e18

// formatValue formats a value for users.
func formatValue(v ast.Value) string {
	if n, ok := numberValue(v); ok && n >= firstTime && n < lastTime {
		return time.Unix(0, int64(n)).UTC().Format(time.RFC3339)
	}
	if n, ok := v.(interface{ Len() int }); ok && !isSmallValue(v) {
		return fmt.Sprintf("%d elements", n.Len())
	}
	plain, err := ast.JSON(v)
	if err != nil {
		return truncateText(v.String())
	}
	text, err := json.Marshal(plain)
	if err != nil { // impossible: it is valid JSON
		return fmt.Sprint(plain)
	}
	return truncateText(string(text))
}

// textOf returns a condition as its author wrote it, in one line.
func textOf(x ast.Node) string { return truncateText(module.SourceText(x)) }

// maxText is how many bytes of a condition or a value are shown.
const maxText = 123

func truncateText(text string) string { return decision.TruncateText(text, maxText) }
