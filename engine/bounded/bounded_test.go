// SPDX-License-Identifier: Apache-2.0

package bounded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/regatta-sh/regatta/engine/bounded"
	"github.com/regatta-sh/regatta/engine/module"
)

// doubled is a value of 2^30 parts that share their memory.
func doubled() *ast.Term {
	out := ast.ArrayTerm(ast.IntNumberTerm(1), ast.StringTerm("x"))
	for range 30 {
		out = ast.ArrayTerm(out, out)
	}
	return out
}

// endless are operands beyond the limits that a function may be given by its type.
func endless(t types.Type) (out []*ast.Term) {
	if named, ok := t.(*types.NamedType); ok {
		t = named.Type
	}
	giant := doubled()
	long := strings.Repeat("a", bounded.MaxBytes+1)
	switch t := t.(type) {
	case types.Any:
		if len(t) == 0 {
			return []*ast.Term{giant}
		}
		for _, one := range t {
			out = append(out, endless(one)...)
		}
	case *types.Array:
		if t.Dynamic() != nil && types.Compare(t.Dynamic(), types.S) == 0 {
			return []*ast.Term{ast.ArrayTerm(ast.StringTerm(long), ast.StringTerm("b"))}
		}
		return []*ast.Term{giant}
	case *types.Set:
		if types.Compare(t.Of(), types.S) == 0 {
			return []*ast.Term{ast.SetTerm(ast.StringTerm(long), ast.StringTerm("b"))}
		}
		return []*ast.Term{ast.SetTerm(ast.NewTerm(ast.NewSet(giant)))}
	case *types.Object:
		return []*ast.Term{ast.ObjectTerm([2]*ast.Term{giant, giant})}
	case types.String:
		return []*ast.Term{ast.StringTerm(long)}
	case types.Number:
		return []*ast.Term{ast.NewTerm(ast.Number(strings.Repeat("9", bounded.MaxDigits+1))), ast.NewTerm(ast.Number("1e-99999999"))}
	}
	return out
}

// harmless is an operand within all limits.
func harmless(t types.Type) *ast.Term {
	if named, ok := t.(*types.NamedType); ok {
		t = named.Type
	}
	switch t := t.(type) {
	case types.Any:
		if len(t) == 0 {
			return ast.ArrayTerm(ast.IntNumberTerm(1))
		}
		return harmless(t[0])
	case *types.Array:
		return ast.ArrayTerm()
	case *types.Set:
		return ast.SetTerm()
	case *types.Object:
		return ast.ObjectTerm()
	case types.Number:
		return ast.IntNumberTerm(2)
	case types.Boolean:
		return ast.BooleanTerm(true)
	case types.Null:
		return ast.NullTerm()
	}
	return ast.StringTerm("x")
}

// answersAtOnce are operands that a function may have whatever is in them.
var answersAtOnce = map[string][]int{
	"object.get": {0, 2}, "object.remove": {0}, "array.slice": {0}, // what is in them stays as it is
	"internal.member_2": {1}, "internal.member_3": {2}, // what is looked for is compared, and is small
}

func TestEveryOperandThatIsTooLargeIsAnErrorThatNamesTheFunction(t *testing.T) {
	tried := 0
	for _, b := range module.PolicyCapabilities().Builtins {
		if _, ok := bounded.Constant[b.Name]; ok {
			continue
		}
		args := b.Decl.NamedFuncArgs().Args
		calls := 0
		for i, arg := range args {
			if slices.Contains(answersAtOnce[b.Name], i) {
				continue
			}
			for _, large := range endless(arg) {
				calls++
				operands := make([]*ast.Term, len(args))
				for j, other := range args {
					if operands[j] = harmless(other); ast.IsScalar(operands[j].Value) != ast.IsScalar(large.Value) && comparison[b.Name] {
						operands[j] = large // else they differ at once
					}
				}
				operands[i] = large
				err := topdown.GetBuiltin(b.Name)(topdown.BuiltinContext{}, operands, func(*ast.Term) error { return nil })
				switch {
				case err == nil:
					t.Errorf("%s answers with operand %d beyond the limits", b.Name, i)
				case !strings.Contains(err.Error(), b.Name+": ") || !saysLimit(err.Error()):
					t.Errorf("%s, operand %d: %.300v", b.Name, i, err)
				}
			}
		}
		if calls == 0 {
			t.Errorf("%s: no operand was tried", b.Name)
		}
		tried += calls
	}
	if tried < 100 {
		t.Errorf("%d operands were tried", tried)
	}
}

// comparison has the functions that are done at once where only one operand is large.
var comparison = map[string]bool{
	"equal": true, "neq": true, "lt": true, "lte": true, "gt": true, "gte": true,
}

func saysLimit(text string) bool {
	return strings.Contains(text, "which is the limit") || strings.Contains(text, "and may have")
}

func TestEveryFunctionIsBoundedOrSaysWhyNot(t *testing.T) {
	for _, b := range module.PolicyCapabilities().Builtins {
		why, constant := bounded.Constant[b.Name]
		switch guarded := bounded.IsGuarded(b.Name); {
		case guarded && constant:
			t.Errorf("%s is in both lists", b.Name)
		case !guarded && why == "":
			t.Errorf("%s is allowed, and nothing bounds what it costs", b.Name)
		}
	}
}

// What results is more than what is given.
func TestResultsThatWouldBeTooLargeAreErrors(t *testing.T) {
	for name, tc := range map[string]struct{ expr, want string }{
		"a text joined by a long one":         {`concat(input.long, numbers_as_text)`, "concat: it would have more than 16777216 bytes"},
		"a width":                             {`sprintf(concat("", [f | some i in numbers.range(1, 100); f := "%[1]999999d"]), [1])`, "sprintf: it would have more than 16777216 bytes"},
		"an operand again and again":          {`sprintf(concat("", [f | some i in numbers.range(1, 100); f := "%[1]s"]), [input.long])`, "sprintf: it would have more than 16777216 bytes"},
		"a precision":                         {`sprintf(concat("", [f | some i in numbers.range(1, 100); f := "%[1].999999f"]), [1.5])`, "sprintf: it would have more than 16777216 bytes"},
		"a text in place of each letter":      {`replace(input.long, "a", input.long)`, "replace: it would have more than 16777216 bytes"},
		"a text between all letters":          {`replace(input.long, "", input.long)`, "replace: it would have more than 16777216 bytes"},
		"texts in place of each letter":       {`strings.replace_n({"a": input.long}, input.long)`, "strings.replace_n: it would have more than 16777216 bytes"},
		"a million letters":                   {`split(concat("", [input.long, input.long, input.long, input.long, input.long, input.long]), "")`, "split: it would have more than 1048576 pieces"},
		"a text compared at each place":       {`indexof(input.long, input.long)`, "indexof: it would have more than 268435456 steps"},
		"letters compared with each":          {`trim(input.long, input.long)`, "trim: it would have more than 268435456 steps"},
		"a pattern that repeats what repeats": {`regex.match("(abcdefghijklmnopqrstuvwxyz){1000}", "b")`, "regex.match: its pattern has"},
		"a match at each place, twice":        {`regex.replace(input.long, "a", input.long)`, "regex.replace: it would have more than 16777216 bytes"},
		"the match, again and again":          {`regex.replace(input.long, "(.*)", concat("", [d | some i in numbers.range(1, 100); d := "$1"]))`, "regex.replace: it would have more than 16777216 bytes"},
		"a place for each of many stars":      {`glob.match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", [], concat("", ["a" | some i in numbers.range(1, 200)]))`, "glob.match: it would have more than 4194304 steps"},
		"braces after braces":                 {`glob.match(concat("", [g | some i in numbers.range(1, 9); g := "{a,?,[a-z],[!b],[ac],[ad],[ae],[af]}"]), null, "aaaaaaaab")`, "glob.match: it would have more than 4194304 steps"},
		"stars that dots end":                 {`glob.match("*a*a*a*a*a*b", ["."], concat("", ["a" | some i in numbers.range(1, 50)]))`, "glob.match: it would have more than 4194304 steps"},
		"stars that pass all, and braces":     {`glob.match("*{a,?}*{a,?}*{a,?}*{a,?}c", null, concat("", ["a" | some i in numbers.range(1, 100)]))`, "glob.match: it would have more than 4194304 steps"},
		"nulls again and again":               {`sprintf(concat("", [f | some i in numbers.range(1, 40); f := "%[1]v"]), [[null | some i in numbers.range(1, 100000)] | some j in [1]])`, "sprintf: it would have more than 16777216 bytes"},
		"nothing but nulls":                   {`sprintf("%v", [nulls, concat("", [input.long | some i in numbers.range(1, 60)])])`, "sprintf: it would have more than 16777216 bytes"},
		"a template of nulls":                 {`$"{[nulls, concat("", [input.long | some i in numbers.range(1, 60)])]}"`, "internal.template_string: it would have more than 16777216 bytes"},
		"numbers of an exponent":              {`sprintf(concat("", ["%f" | some i in numbers.range(1, 60000)]), [1e308 | some i in numbers.range(1, 60000)])`, "sprintf: it would have more than 16777216 bytes"},
		"letters of all languages":            {`regex.match(concat("", ["\\pL" | some i in numbers.range(1, 3300)]), "b")`, "regex.match: its pattern has"},
		"a valid pattern of all languages":    {`regex.is_valid(concat("", ["\\PL" | some i in numbers.range(1, 3300)]))`, "regex.is_valid: its pattern has"},
		"classes that ignore case":            {`regex.match(concat("", ["(?i:[^a])\\pL" | some i in numbers.range(1, 700)]), "b")`, "regex.match: its pattern has"},
		"places of a pattern":                 {`regex.find_all_string_submatch_n("", concat("", [input.long, input.long, input.long, input.long, "a"]), -1)`, "regex.find_all_string_submatch_n: it would have more than 1048576 places"},
		"places of groups":                    {`regex.find_n("(a)(a)(a)(a)", concat("", [input.long, "a"]), -1)`, "regex.find_n: it would have more than 1048576 places"},
		"pieces of a pattern":                 {`regex.split("", concat("", [input.long, input.long, input.long, input.long, "a"]))`, "regex.split: it would have more than 1048576 places"},
		"a text of many digits":               {`to_number(concat("", ["0.", replace(input.long, "a", "7")])) in [0.5]`, "to_number: its text has a number of"},
		"a text of a large exponent":          {`to_number("1e-99999999") in [0.5]`, "to_number: its text has a number of an exponent"},
		"a quantity of many digits":           {`units.parse(concat("", [replace(input.long, "a", "7"), "Ki"]))`, "units.parse: its text has a number of"},
		"a quantity of a large exponent":      {`units.parse("\"1\"e999999Ki")`, "units.parse: its text has a number of an exponent"},
		"bytes of many digits":                {`units.parse_bytes(concat("", [replace(input.long, "a", "7"), "KiB"]))`, "units.parse_bytes: its text has a number of"},
		"JSON of many digits":                 {`json.unmarshal(concat("", ["[\"\\\"\", 0.", replace(input.long, "a", "7"), "]"])) == []`, "json.unmarshal: a number has"},
		"a range to the end of the world":     {`numbers.range(1, 10000000000)`, "numbers.range: from 1 to 10000000000 there are more than 1048576 numbers"},
		"a range in steps":                    {`numbers.range_step(-10000000000, 1, 3)`, "numbers.range_step: from -10000000000 to 1 there are more than 1048576 numbers"},
		"text that is mostly lists":           {`json.unmarshal(concat("", ["[", input.long, input.long, input.long, input.long, "]"]))`, "json.unmarshal: it would have more than 1048576 bytes to parse"},
	} {
		t.Run(name, func(t *testing.T) {
			expr := strings.ReplaceAll(tc.expr, "nulls", `[[null | some i in numbers.range(1, 400)] | some j in numbers.range(1, 400)]`)
			expr = strings.ReplaceAll(expr, "numbers_as_text", `[s | some i in numbers.range(1, 100); s := "x"]`)
			if err := evaluate(t, "hold := "+expr); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %.300v; want %s", err, tc.want)
			}
		})
	}
}

// evaluate asks a rule hold of a package that extends, with a text of 256 KiB as input.long.
func evaluate(t *testing.T, source string) error {
	t.Helper()
	parsed, err := module.Parse("x.rego", "package extend.test.x\n"+source)
	if err != nil {
		t.Fatal(err)
	}
	c, err := module.Compile(map[string]*ast.Module{"x.rego": parsed})
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rego.New(rego.Compiler(c), rego.Query("data.extend.test.x.hold"), rego.StrictBuiltinErrors(true),
		rego.Input(map[string]any{"n": 1, "long": strings.Repeat("a", 1<<18)})).Eval(context.Background())
	if err == nil && len(rs) == 0 {
		return fmt.Errorf("it is undefined")
	}
	return err
}

// doubling is rules that double a value n times by a function, whose result the type
// checker knows nothing of.
func doubling(name string, n int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s0 := [input.n, 1]\n", name)
	for i := range n {
		fmt.Fprintf(&out, "%s%d := twice(%s%d)\n", name, i+1, name, i)
	}
	return out.String()
}

// What OPA compares, copies and looks up itself is no call of a built-in function.
func TestARuleMakesNoValueBeyondTheLimits(t *testing.T) {
	const want = "the value of an expression is too large: its operands have more than 4194304 values"
	for name, source := range map[string]string{
		"a list":                    "twice(x) := [x, x]\nhold := a30",
		"a list in a condition":     "twice(x) := y if { y := [x, x] }\nhold := a30",
		"an object":                 "twice(x) := {\"a\": x, \"b\": x}\nhold := a30",
		"a comprehension":           "twice(x) := [x | some i in [1, 2]]\nhold := a30",
		"an object comprehension":   "twice(x) := {i: x | some i in [1, 2]}\nhold := a30",
		"what comprehensions have":  "twice(x) := [[x, x] | some i in [1]][0]\nhold := a30",
		"an argument":               "twice(x) := same([x, x])\nsame(x) := x\nhold := a30",
		"an argument of a built-in": "twice(x) := array.reverse([x, x])\nhold := a30",
		"a default":                 "twice(x) := object.get({}, \"k\", [x, x])\nhold := a30",
		"with":                      "twice(x) := y if { y := input.v with input.v as [x, x] }\nhold := a30",
		"a partial set":             "twice(x) := [x, x]\nhold contains [i, a21] if some i in [1, 2]\n",
		"an else":                   "twice(x) := 1 if { x == 2 } else := [x, x]\nhold := a30",
		"every":                     "twice(x) := y if { y := [x, x]; every z in [y] { same([z, z]) != 1 } }\nsame(x) := x\nhold := a30",
		"a negation":                "twice(x) := [x, x]\nhold if not same([a20, a20, a20])\nsame(x) := x",
		"a chain of arguments":      chain(30) + "twice(x) := x\nhold := f0([1, 2])",
	} {
		t.Run(name, func(t *testing.T) {
			if err := evaluate(t, source+"\n"+doubling("a", 30)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %.300v; want %s", err, want)
			}
		})
	}
}

// chain is functions that give each other two of their argument.
func chain(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "f%d(x) := f%d([x, x])\n", i, i+1)
	}
	fmt.Fprintf(&out, "f%d(x) := x\n", n)
	return out.String()
}

func TestWhatRulesOfOrdinarySizeSayIsAsItWas(t *testing.T) {
	for name, source := range map[string]string{
		"patterns":           `hold if { [a, {"k": b}] := [1, {"k": 2}]; a + b == 3 }`,
		"patterns of some":   `hold if { some [a, b] in [[1, 2], [3, 4]]; a + b == 7 }`,
		"nested":             `hold if { x := {"l": [y | some z in [1, 2]; y := [z, input.n]]}; x == {"l": [[1, 1], [2, 1]]} }`,
		"every":              `hold if every k, v in {"a": 1, "b": 1} { [k, v] in [["a", 1], ["b", input.n]] }`,
		"not":                `hold if { x := input.n; not [x, x] == [1, 2] }`,
		"or":                 `hold if { x := input.n; count([x, x]) == 2 }`,
		"a function":         "f(a, [b, c]) := {\"a\": a, \"b\": [b, c]}\nhold if { x := input.n; f(x, [x, 2]) == {\"a\": 1, \"b\": [1, 2]} }",
		"an else":            "f(x) := [x] if { x > 1 } else := [x, x]\nhold if f(input.n) == [1, 1]",
		"a partial object":   "p[k] := [k, input.n] if some k in [\"a\", \"b\"]\nhold if p == {\"a\": [\"a\", 1], \"b\": [\"b\", 1]}",
		"a partial set":      "s contains [k, input.n] if some k in [\"a\", \"b\"]\nhold if { [\"a\", 1] in s; s[[\"b\", x]]; x == 1 }",
		"with":               "p := input.v\nhold if { x := input.n; p == [x, 2] with input.v as [x, 2] }",
		"text":               `hold if { x := input.n; $"{x} of {[x, x]}" == "1 of [1, 1]" }`,
		"an element of sets": `hold if { x := input.n; s := {[x, 1], [x, 2]}; some e in s; e == [1, 2] }`,
		"sets of sets":       `hold if { x := input.n; union({{x}, {2}}) == {1, 2} }`,
		"a large text":       `hold if { count(concat("", [s | some i in numbers.range(1, 60); s := input.long])) == 60 * 262144 }`,
		"a large list":       `hold if { x := [[i, i] | some i in numbers.range(1, 100000)]; count(sort(x)) == 100000 }`,
		"formats":            `hold if sprintf("%5d|%-5s|%05.1f|%v|%%|%[1]d|%*d", [1, "a", 2.25, [1], 3, 4]) != ""`,
		"stars of an image":  `hold if { image := concat("", ["registry.example.com/", substring(input.long, 0, 80), "/checkout-service:v1-2-3@sha256:", substring(input.long, 0, 64)]); every d in [null, [], ["/"]] { glob.match("registry.example.com/*/{checkout,billing}*:{v1,v2}*@sha256:*", d, image) } }`,
		"many alternatives":  `hold if { names := concat(",", [$"registry-{i}/*" | some i in numbers.range(1, 500)]); glob.match(concat("", ["{", names, "}"]), ["."], "registry-500/shop/checkout:v1") }`,
		"many stars":         `hold if { glob.match("*-*-*-*-*-*", null, concat("-", ["a" | some i in numbers.range(1, 100)])) }`,
		"all languages":      `hold if { regex.match("^[\\p{L}\\p{N}]{1,63}$", "größe"); regex.match("\\pL", concat("", [input.long, input.long])) }`,
		"numbers of texts":   `hold if { to_number("1.5e3") == 1500; units.parse("5Ei") == 5764607523034234880; units.parse("12m") == 0.012; units.parse_bytes("1e3KiB") == 1024000; json.unmarshal("{\"k\": [\"1e9999\", -1.5e2]}").k[1] == -150 }`,
		"members":            `hold if { "a" in {"a"}; [1, 2] in {[1, 2]}; not [1, 3] in [[1, 2]]; "k", [1] in {"k": [1]}; [1], 2 in {[1]: 2}; not 3, 1 in [1]; 1 in {"k": 1} }`,
		"a pattern":          `hold if { regex.match("^[a-z]{1,63}(\\.[a-z]{1,63}){0,10}$", "shop.example"); glob.match("{a,b}-*-*.example.com", ["."], "a-x-y.example.com") }`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := evaluate(t, source); err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// flag is cancelled from its nth look on.
type flag struct{ looks, from int }

func (f *flag) Cancel() {}
func (f *flag) Cancelled() bool {
	f.looks++
	return f.looks > f.from
}

func TestMeasuringEndsWhenTheEvaluationIsCancelled(t *testing.T) {
	stop := &flag{from: 3}
	err := topdown.GetBuiltin("sort")(topdown.BuiltinContext{Cancel: stop}, []*ast.Term{doubled()}, func(*ast.Term) error { return nil })
	var halt topdown.Halt
	if !errors.As(err, &halt) || !topdown.IsCancel(halt.Err) || stop.looks != 4 {
		t.Errorf("got %v after %d looks", err, stop.looks)
	}
}

// What is looked for is measured, and what it is looked for in is not: neither the
// number of its elements nor what is in them counts.
func TestLookingForAMemberDoesNotMeasureTheCollection(t *testing.T) {
	giant, key := doubled(), ast.ArrayTerm(ast.StringTerm("shop"), ast.StringTerm("checkout"))
	for name, operands := range map[string][]*ast.Term{
		"a set":             {key, ast.SetTerm(giant, key)},
		"a list":            {key, ast.ArrayTerm(giant, key)},
		"values":            {key, ast.ObjectTerm([2]*ast.Term{ast.StringTerm("a"), giant}, [2]*ast.Term{ast.StringTerm("b"), key})},
		"a scalar":          {ast.NumberTerm("1"), ast.ArrayTerm(giant, ast.NumberTerm("1"))},
		"a key":             {key, ast.NullTerm(), ast.ObjectTerm([2]*ast.Term{giant, giant}, [2]*ast.Term{key, ast.NullTerm()})},
		"an index":          {ast.NumberTerm("1"), key, ast.ArrayTerm(giant, key)},
		"a value of giants": {ast.StringTerm("b"), key, ast.ObjectTerm([2]*ast.Term{ast.StringTerm("a"), giant}, [2]*ast.Term{ast.StringTerm("b"), key})},
	} {
		t.Run(name, func(t *testing.T) {
			stop := &flag{}
			found := false
			err := topdown.GetBuiltin(fmt.Sprintf("internal.member_%d", len(operands)))(topdown.BuiltinContext{Cancel: stop}, operands,
				func(answer *ast.Term) error { found = answer.Equal(ast.BooleanTerm(true)); return nil })
			if err != nil || !found || stop.looks > 0 {
				t.Errorf("got %v, %v after %d looks", found, err, stop.looks)
			}
		})
	}
}

func TestLookingForAMemberIsBoundedByWhatIsCompared(t *testing.T) {
	large := ast.NewArray()
	for range 3000 {
		large = large.Append(ast.NullTerm())
	}
	elements := make([]*ast.Term, 3000)
	for i := range elements {
		elements[i] = ast.NewTerm(large)
	}
	many := ast.NumberTerm(json.Number("0." + strings.Repeat("7", 1<<20)))
	none := ast.NumberTerm("0.5")
	long := strings.Repeat("a", 1<<20)
	text, texts := ast.StringTerm(long+"b"), make([]*ast.Term, 1000)
	for i := range texts {
		texts[i] = text
	}
	for name, operands := range map[string][]*ast.Term{
		"a list of large elements": {ast.NewTerm(large.Append(ast.NullTerm())), ast.ArrayTerm(elements...)},
		"a text again and again":   {ast.StringTerm(long + "c"), ast.ArrayTerm(texts...)},
		"a large element":          {doubled(), ast.ArrayTerm(ast.NullTerm())},
		"a large key":              {doubled(), ast.NullTerm(), ast.ObjectTerm()},
		"a large value":            {ast.StringTerm("k"), doubled(), ast.ObjectTerm()},
		"a number of many digits":  {many, ast.ArrayTerm(none)},
		"a list of many digits":    {none, ast.ArrayTerm(many)},
		"an object of many digits": {none, ast.ObjectTerm([2]*ast.Term{ast.StringTerm("k"), many})},
		"a key of many digits":     {many, ast.NullTerm(), ast.ObjectTerm()},
		"a value of many digits":   {ast.StringTerm("k"), many, ast.ObjectTerm([2]*ast.Term{ast.StringTerm("k"), none})},
	} {
		t.Run(name, func(t *testing.T) {
			err := topdown.GetBuiltin(fmt.Sprintf("internal.member_%d", len(operands)))(topdown.BuiltinContext{}, operands, func(*ast.Term) error { return nil })
			if err == nil || !saysLimit(err.Error()) {
				t.Errorf("got %.300v", err)
			}
		})
	}
}

func TestKeysAreMeasuredAndValuesAreNot(t *testing.T) {
	many := ast.NumberTerm(json.Number("0." + strings.Repeat("7", 1<<20)))
	object := ast.ObjectTerm([2]*ast.Term{ast.NumberTerm("0.5"), ast.NullTerm()})
	keys := ast.ObjectTerm([2]*ast.Term{ast.StringTerm("k"), doubled()})
	ignore := func(*ast.Term) error { return nil }
	if err := topdown.GetBuiltin("object.remove")(topdown.BuiltinContext{}, []*ast.Term{object, keys}, ignore); err != nil {
		t.Errorf("object.remove measures the values of its keys: %v", err)
	}
	if err := topdown.GetBuiltin("equal")(topdown.BuiltinContext{}, []*ast.Term{doubled(), ast.ArrayTerm()}, ignore); err != nil {
		t.Errorf("equal measures what it compares with nothing: %v", err)
	}
	if err := topdown.GetBuiltin("object.get")(topdown.BuiltinContext{}, []*ast.Term{object, many, ast.NullTerm()}, ignore); err == nil || !saysLimit(err.Error()) {
		t.Errorf("object.get of a key of many digits: %.300v", err)
	}
}
