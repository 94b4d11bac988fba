package engine_test

import (
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
	s, err := e.Compile(t.Context(), bundle.Set{b})
	if err != nil {
		t.Fatal(err)
	}
	var holds []engine.Clause
	source := e.Source(s, decision.Subject{})
	for _, c := range source.Clauses("test") {
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
			got, err := source.Solve(t.Context(), many, tc.conditions, input)
			if (err != nil) != tc.err || (got == nil) != (tc.want == nil) || tc.want != nil && got["name"] != tc.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
