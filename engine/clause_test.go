// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
)

const clauses = `package extend.test.x

import data.lib.shared as other
import future.keywords.not

# METADATA
# title: Many
# labels:
#   id: x.many
hold contains {"reason": "R", "message": "m"} if {
	input.n > limit
	some name in input.names
	name != "-"
	not other.known(name)
}

hold contains {"reason": "S", "message": "m"} if data.lib.shared.never

limit := 5

f(x) if x
`

func TestClausesAreSolvedAsTheyAreWritten(t *testing.T) {
	e, err := engine.New(fstest.MapFS{
		"test.rego": {Data: []byte(builtin)},
		"lib.rego":  {Data: []byte("package lib.shared\n\nknown(name) if input.extra == name\n\nnever if false\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b, err := bundle.FromFiles("x", map[string]string{"x.rego": clauses})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.CompileBundles(t.Context(), bundle.Set{b})
	if err != nil {
		t.Fatal(err)
	}
	var holds []engine.Clause
	source := e.PolicySource(s, decision.Subject{})
	for _, c := range source.PointClauses("test/go") {
		if c.Name == "hold" {
			holds = append(holds, c)
		}
		if c.Name == "f" {
			t.Error("a function is a clause")
		}
	}
	if len(holds) != 2 || holds[0].Rule.ID != "x.many" || holds[0].Rule.Title != "Many" || holds[0].Rule.Place != "x.rego:10:1" || holds[1].Rule.ID != "extend.test.x" {
		t.Fatalf("clauses %+v", holds)
	}
	many := holds[0]
	for _, tc := range []struct {
		name       string
		in         facts
		conditions ast.Body
		want       ast.Value // name
		err        bool
	}{
		{"all are true", facts{N: 6, Names: []string{"a"}}, many.Conditions, ast.String("a"), false},
		{"what is unknown counts, and what is known does not", facts{N: 6, Names: []string{"a", "b"}, Extra: "a"}, many.Conditions, ast.String("b"), false},
		{"what is true only of the second", facts{N: 6, Names: []string{"-", "b"}}, many.Conditions, ast.String("b"), false},
		{"one is not true", facts{N: 5, Names: []string{"a"}}, many.Conditions, nil, false},
		{"without that one they are", facts{N: 5, Names: []string{"a"}}, many.Conditions[1:], ast.String("a"), false},
		{"nothing binds the name", facts{N: 6}, many.Conditions[2:], nil, true},
		{"a condition that is false", facts{}, holds[1].Conditions, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			input, err := e.Codec().Encode(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := source.SolveConditions(t.Context(), many, tc.conditions, input)
			if (err != nil) != tc.err || (got == nil) != (tc.want == nil) || tc.want != nil && got["name"] != tc.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// hear has two points: one asks users and one does not, but for what it shares
// with the other.
const hear = `package test

go := {"go": true, "total": 1, "holds": holds}

holds contains h if {
	some h in data.extend.test[_].hold
	fit
}

fit if input.n > 1

stay := "no" if {
	short
	fit
}

short if input.n < 9
`

func TestClausesAreThoseThatAPointReads(t *testing.T) {
	e, err := engine.New(fstest.MapFS{"test.rego": {Data: []byte(hear)}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, tc := range []struct {
		name, policy string
		point        decision.Name
		want         string
	}{
		{"a point that asks users", "package extend.test.x\n\nhold contains {} if often\n\noften if input.n > 2\n\nrank := 1", "test/go", "fit go hold holds often"},
		{"a point of the same domain that does not", "package extend.test.x\n\nhold contains {} if often\n\noften if input.n > 2", "test/stay", "fit short stay"},
		{"a point that an override answers", "package override.test\n\ngo := {\"go\": other}\n\nother if input.n > 3", "test/go", "go other"},
		{"a point beside one that an override answers", "package override.test\n\ngo := {\"go\": true}", "test/stay", "fit short stay"},
		{"a point that no rule answers", "package extend.test.x\n\nhold contains {} if input.n > 1", "test/come", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := bundle.FromFiles("x", map[string]string{"x.rego": tc.policy})
			if err != nil {
				t.Fatal(err)
			}
			s, err := e.CompileBundles(t.Context(), bundle.Set{b})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range e.PolicySource(s, decision.Subject{}).PointClauses(tc.point) {
				names = append(names, c.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatClausesReferToIsFound(t *testing.T) {
	e, err := engine.New(fstest.MapFS{
		"test.rego": {Data: []byte(builtin)},
		"lib.rego":  {Data: []byte("package lib.shared\n\nknown(name) if input.extra == name\n\nknown(\"-\")\n\nnever if false\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b, err := bundle.FromFiles("x", map[string]string{"x.rego": `package extend.test.x

import data.lib.shared as other
import data.lib.shared.known

hold contains {"reason": "R", "message": sprintf("%v %v", [known("-"), other.never])} if {
	hidden := input.n
	hidden > 1
}

hidden if input.extra == "x"

seen contains name if some name in input.names

default level := 1

level := 2 if input.n > 2 else := 3 if input.n > 1

limits[name] := 1 if some name in input.names

limits.x := 2 if input.n > 1
`})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.CompileBundles(t.Context(), bundle.Set{b})
	if err != nil {
		t.Fatal(err)
	}
	source := e.PolicySource(s, decision.Subject{})
	hold := source.PointClauses("test/go")[slices.IndexFunc(source.PointClauses("test/go"), func(c engine.Clause) bool { return c.Name == "hold" && c.Rule.ID == "extend.test.x" })]
	for _, tc := range []struct {
		name, term string
		args       int
		want       string // places and how many ways, D if default, W if the reference goes on below
	}{
		{"a name of the clause's own", "hidden", 0, ""},
		{"a fact", "input.n", 0, ""},
		{"a function that is imported", "known", 1, "lib.rego:3:1/1 lib.rego:5:1/1"},
		{"a function without its argument", "known", 0, ""},
		{"a rule of a package that is imported", "other.never", 0, "lib.rego:7:1/1"},
		{"a rule by its whole path", "data.lib.shared.never", 0, "lib.rego:7:1/1"},
		{"a rule that no bundle has", "other.nothing", 0, ""},
		{"a set", "seen", 0, "x.rego:13:1/1"},
		{"an element", `seen["a"]`, 0, "x.rego:13:1/1"},
		{"a part of an element", `seen["a"].b`, 0, "x.rego:13:1/1W"},
		{"an else and a default", "level", 0, "x.rego:15:1/1D x.rego:17:1/2"},
		{"an entry of any name, and not of another", "limits.y", 0, "x.rego:19:1/1"},
		{"an entry that is defined by its name too", "limits.x", 0, "x.rego:19:1/1 x.rego:21:1/1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var args []*ast.Term
			for range tc.args {
				args = append(args, ast.StringTerm("a"))
			}
			var got []string
			for _, d := range source.FindDefinitions(hold, hold.LocalVars(), ast.MustParseTerm(tc.term), args) {
				text := fmt.Sprintf("%s/%d", d.Ways[0].Rule.Place, len(d.Ways))
				if d.Default {
					text += "D"
				}
				if d.Within {
					text += "W"
				}
				got = append(got, text)
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("got %s, want %s", text, tc.want)
			}
		})
	}
}

// Who explains a decision evaluates the same rules as who makes it.
func TestSolvingIsBoundedAsDecidingIs(t *testing.T) {
	for name, tc := range map[string]struct {
		condition, want string
		opts            []engine.Option
	}{
		"time":   {"some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a + b == 0", "no answer within 1s", nil},
		"memory": {"count([s | some a in numbers.range(1, 1000000); some b in [1, 2, 3]; s := sprintf(\"%0100d\", [a * b])]) == 0", "memory grew by", []engine.Option{engine.WithMemory(16 << 20), engine.WithPatience(60)}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, builtin, tc.opts...)
			s, err := e.CompileBundles(t.Context(), bundle.Set{platform(t, "x", "package extend.test.x\nhold contains {\"reason\": \"R\", \"message\": \"m\"} if {\n"+strings.ReplaceAll(tc.condition, "; some", "\nsome")+"\n}\n")})
			if err != nil {
				t.Fatal(err)
			}
			source := e.PolicySource(s, decision.Subject{})
			for _, c := range source.PointClauses("test/go") {
				if c.Name != "hold" {
					continue
				}
				input, err := e.Codec().Encode(facts{N: 1})
				if err != nil {
					t.Fatal(err)
				}
				if _, err = source.SolveConditions(t.Context(), c, c.Conditions, input); err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v; want %s", err, tc.want)
				}
				return
			}
			t.Error("there is no hold")
		})
	}
}
