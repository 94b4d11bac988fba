package record

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
)

// Nearest is what would have changed an answer.
type Nearest struct {
	// Now are the rules that hold or refuse, and what each depends on. All of them
	// would have to let go.
	Now []Near `json:"now,omitempty"`
	// Almost are rules that say nothing now and would with one condition more, the
	// nearest to its threshold first.
	Almost []Near `json:"almost,omitempty"`
	// Partial is true when the time was over before all rules were looked at.
	Partial bool `json:"partial,omitempty"`
}

// Near is a rule, and conditions of which one decides whether it is true. Of a
// rule that is, any of them; of one that is not, the only one that is missing.
type Near struct {
	Rule   string `json:"rule"`
	Title  string `json:"title,omitempty"`
	Bundle string `json:"bundle,omitempty"`
	Place  string `json:"place,omitempty"`
	// Wish is what the rule says: hold, deny or exempt. It is empty for another rule
	// that gave a reason.
	Wish       string      `json:"wish,omitempty"`
	Conditions []Condition `json:"conditions"`
}

// Condition is one line of a rule.
type Condition struct {
	Text string `json:"text"`
	// Why says what its facts are, and what they would have to be.
	Why string `json:"why,omitempty"`
	// Distance is how far a number is from its threshold, as a part of that;
	// absent where there is none.
	Distance *float64 `json:"distance,omitempty"`
}

// maxAlmost is how many rules are told that say nothing.
const maxAlmost = 5

// wishes are the rules that hold, refuse or let through.
var wishes = []string{"hold", "holds", "deny", "exempt"}

// FindNearest works out what would have changed the answer of a record, by
// evaluating the conditions of rules one by one on the facts of the record, with
// the policies that made it. It ends with the context, with what it has by then.
// Its error is that the policies of the record are gone.
//
// It is honest about what it does: conditions are taken as they are written, and
// what a helper of a rule depends on is not looked into.
func FindNearest(ctx context.Context, e *engine.Engine, r decision.Record) (Nearest, error) {
	s := e.Snapshot()
	if s.RevisionFor(r.Subject) != r.Revision {
		return Nearest{}, fmt.Errorf("finding the nearest rule: the policies of revision %s are not active any more", r.Revision)
	}
	input, err := e.Codec().Encode(r.Input)
	if err != nil {
		return Nearest{}, fmt.Errorf("finding the nearest rule: %w", err)
	}
	said := map[string]bool{}
	for _, h := range decision.VerdictOf(r).Reasons {
		said[h.Rule] = true
	}
	f := &finder{ctx: ctx, engine: e, snapshot: s, subject: r.Subject, input: input}
	var out Nearest
	for _, c := range s.Clauses(e.Builtin(), r.Subject, r.Point.Domain()) {
		wish := slices.Contains(wishes, c.Name)
		if !wish && !(c.Own && said[c.Rule.ID]) {
			continue
		}
		near := Near{Rule: c.Rule.ID, Title: c.Rule.Title, Bundle: c.Rule.Bundle, Place: c.Rule.Place}
		if wish {
			near.Wish = strings.TrimSuffix(c.Name, "s")
		}
		switch fires := f.solve(c, c.Conditions) != nil; {
		case fires && said[c.Rule.ID]:
			if near.Conditions = f.conditions(c); len(near.Conditions) > 0 {
				out.Now = append(out.Now, near)
			}
		case !fires && wish:
			if missing := f.missing(c); missing != nil {
				near.Conditions = []Condition{*missing}
				out.Almost = append(out.Almost, near)
			}
		}
		if ctx.Err() != nil {
			out.Partial = true
			break
		}
	}
	slices.SortStableFunc(out.Almost, func(a, b Near) int { return byDistance(a.Conditions[0], b.Conditions[0]) })
	out.Almost = out.Almost[:min(len(out.Almost), maxAlmost)]
	return out, nil
}

// byDistance puts what is nearest first, and what has no distance last.
func byDistance(a, b Condition) int {
	far := func(c Condition) float64 {
		if c.Distance == nil {
			return math.Inf(1)
		}
		return *c.Distance
	}
	return cmp.Compare(far(a), far(b))
}

// finder evaluates conditions.
type finder struct {
	ctx      context.Context
	engine   *engine.Engine
	snapshot *engine.Snapshot
	subject  decision.Subject
	input    ast.Value
}

// solve is nil when conditions are not true, or cannot be asked by themselves.
func (f *finder) solve(c engine.Clause, conditions ast.Body) map[string]any {
	got, err := f.engine.Solve(f.ctx, f.snapshot, f.subject, c, conditions, f.input)
	if err != nil {
		return nil
	}
	return got
}

// conditions are those of a rule that is true, but for those that only name
// something.
func (f *finder) conditions(c engine.Clause) []Condition {
	var out []Condition
	for _, x := range c.Conditions {
		if asks(x) {
			out = append(out, f.describe(c, x, c.Conditions, true))
		}
	}
	slices.SortStableFunc(out, byDistance)
	return out
}

// missing is the only condition that keeps a rule from being true; nil if there
// is none, or more than one, or if the others mean nothing without it.
func (f *finder) missing(c engine.Clause) *Condition {
	for i, x := range c.Conditions {
		if !asks(x) {
			continue
		}
		rest := slices.Delete(slices.Clone(c.Conditions), i, i+1)
		if len(rest) == 0 || f.solve(c, rest) != nil {
			out := f.describe(c, x, rest, false)
			return &out
		}
	}
	return nil
}

// asks says whether an expression can be true or false, and is not there to give
// something a name.
func asks(x *ast.Expr) bool {
	if _, ok := x.Terms.(*ast.SomeDecl); ok {
		return false
	}
	return !x.IsAssignment() && !(x.IsEquality() && len(x.Operands()) == 2 && slices.ContainsFunc(x.Operands(), func(t *ast.Term) bool { _, ok := t.Value.(ast.Var); return ok }))
}

// Names of the two sides of a comparison, which no policy can use.
const left, right = "__left__", "__right__"

// describe tells a condition with its values. The others are true.
func (f *finder) describe(c engine.Clause, x *ast.Expr, others ast.Body, holds bool) Condition {
	out := Condition{Text: textOf(x.Location, x.String())}
	as, turned, ok := compared(x)
	if !ok {
		out.Why = f.facts(c, x, others)
		return out
	}
	a, b := x.Operands()[0], x.Operands()[1]
	if ast.IsConstant(a.Value) { // the fact goes first
		a, b, as = b, a, turned
	}
	values := f.solve(c, append(slices.Clone(others), ast.Equality.Expr(ast.VarTerm(left), a), ast.Equality.Expr(ast.VarTerm(right), b)))
	if values == nil {
		out.Why = f.facts(c, x, others)
		return out
	}
	name, is, than := textOf(a.Location, a.String()), values[left], values[right]
	n, ok1 := number(is)
	m, ok2 := number(than)
	verb := "and would have to be " + as.when
	if holds {
		verb = "and this ends when it is " + as.otherwise
	}
	out.Why = fmt.Sprintf("%s is %s, %s %s", name, said(is), verb, said(than))
	if ok1 && ok2 {
		d := math.Abs(n-m) / math.Max(1, math.Abs(m))
		out.Distance = &d
	}
	return out
}

// facts are the values of what a condition refers to in the question.
func (f *finder) facts(c engine.Clause, x *ast.Expr, others ast.Body) string {
	var out []string
	ast.WalkRefs(x, func(ref ast.Ref) bool {
		if !ref.HasPrefix(ast.InputRootRef) || len(ref) < 2 {
			return false
		}
		name, value := ref.String(), "not there"
		if got := f.solve(c, append(slices.Clone(others), ast.Equality.Expr(ast.VarTerm(left), ast.NewTerm(ref)))); got != nil {
			value = said(got[left])
		}
		if line := name + " is " + value; !slices.Contains(out, line) {
			out = append(out, line)
		}
		return true
	})
	return strings.Join(out, ", ")
}

// comparison is an operator in words: when it is true of a fact, and when not.
type comparison struct{ when, otherwise string }

// compared is what an expression says of its two operands, and what it would say
// with the second one first; false if it compares nothing.
func compared(x *ast.Expr) (as, turned comparison, ok bool) {
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
	}
	return as, turned, false
}

func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	x, err := n.Float64()
	return x, err == nil
}

// Between these, numbers are times in nanoseconds: the years 2001 to 2096.
const firstTime, lastTime = 1e18, 4e18

// said is a value for people.
func said(v any) string {
	if n, ok := number(v); ok && n >= firstTime && n < lastTime {
		return time.Unix(0, int64(n)).UTC().Format(time.RFC3339)
	}
	text, err := json.Marshal(v)
	if err != nil { // it is JSON
		return fmt.Sprint(v)
	}
	return short(string(text))
}

// textOf is what somebody wrote, in a line.
func textOf(at *ast.Location, otherwise string) string {
	if at == nil || len(at.Text) == 0 {
		return short(otherwise)
	}
	return short(strings.Join(strings.Fields(string(at.Text)), " "))
}
