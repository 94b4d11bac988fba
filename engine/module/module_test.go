// SPDX-License-Identifier: Apache-2.0

package module_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/regatta-sh/regatta/engine/module"
)

func TestADenyRuleDoesNotFailOpen(t *testing.T) {
	for name, source := range map[string]string{
		"a negated call of a function over a missing field denies": `package p
deny if not allowed(input.missing)
allowed(x) if x == "yes"`,
		"a negated built-in over a missing field denies": `package p
deny if not startswith(input.missing, "a")`,
		"a negated comparison of a missing field denies": `package p
deny if not input.missing == "a"`,
		"the import of the keyword is allowed and changes nothing": `package p
import future.keywords.not
deny if not startswith(input.missing, "a")`,
		"the import of v1 does not bring v1's meaning back": `package p
import rego.v1
deny if not startswith(input.missing, "a")`,
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := module.Parse("p.rego", source)
			if err != nil {
				t.Fatal(err)
			}
			c, err := module.Compile(map[string]*ast.Module{"p.rego": parsed})
			if err != nil {
				t.Fatal(err)
			}
			rs, err := rego.New(rego.Compiler(c), rego.Query("data.p.deny"), rego.Input(map[string]any{})).Eval(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if !rs.Allowed() {
				t.Errorf("the rule does not deny: %v", rs)
			}
		})
	}
}

func TestErrorsNameTheirPlace(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"a syntax error":              {"package p\n\nx if {", "p.rego:3:"},
		"an unknown function":         {"package p\nx := nope(1)", "p.rego:2:6: rego_type_error: undefined function nope"},
		"an unused variable (strict)": {"package p\nx if { y := 1; true }", "p.rego:2:8: "},
		"the network is out of reach": {`package p` + "\n" + `x := http.send({})`, "undefined function http.send; policies have no network"},
		"the clock is out of reach":   {"package p\nx := time.now_ns()", "undefined function time.now_ns; policies have no clock: time is a fact, input.now"},
		"randomness is out of reach":  {"package p\nx := rand.intn(\"x\", 2)", "undefined function rand.intn; policies have no randomness"},
		"the engine is out of reach":  {"package p\nx := opa.runtime()", "undefined function opa.runtime; policies do not see"},
		"what costs too much":         {"package p\nx := bits.lsh(1, 2)", "undefined function bits.lsh; OPA has it, and policies here do not"},
		"a number of many digits":     {"package p\nx if [input.n] == [0." + strings.Repeat("7", 1000) + "]", "p.rego:2:20: a number has 1002 digits, and may have 1000"},
		"a large exponent":            {"package p\nx := {1e1001}", "p.rego:2:7: a number has the exponent 1001, and may have 1000"},
		"an empty file":               {"", "p.rego:1:1: "},
		"only a comment":              {"# nothing", "p.rego:1:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := module.Parse("p.rego", tc.source)
			if err == nil {
				_, err = module.Compile(map[string]*ast.Module{"p.rego": parsed})
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A release of OPA may bring others.
func TestEveryFunctionThatIsNotPureIsRefusedWithItsReason(t *testing.T) {
	for _, b := range ast.Builtins {
		if !b.Nondeterministic {
			continue
		}
		parsed, err := module.Parse("p.rego", "package p\nx := "+b.Name+"(1)")
		if err == nil {
			_, err = module.Compile(map[string]*ast.Module{"p.rego": parsed})
		}
		if err == nil || !strings.Contains(err.Error(), "undefined function "+b.Name+"; policies ") {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}

func TestProblemsHaveACodeOfTheirOwn(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"of OPA's parser":       {"package p\nx if {", "p.rego:2:"},
		"of OPA's type checker": {"package p\nx := nope(1)", "p.rego:2:6 rego_type_error undefined function nope"},
		"of OPA's compiler":     {"package p\nx := y", "p.rego:2:6 rego_unsafe_var_error var y is unsafe"},
		"of an empty file":      {"", "p.rego:1:1 rego_parse_error empty module"},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := module.Parse("p.rego", tc.source)
			if err == nil {
				_, err = module.Compile(map[string]*ast.Module{"p.rego": parsed})
			}
			var ps module.Problems
			if !errors.As(err, &ps) || len(ps) == 0 || ps[0].Code == "" || !strings.HasPrefix(ps[0].FormatLine(), tc.want) {
				t.Errorf("got %q, want %q", ps, tc.want)
			}
		})
	}
	plain := module.ProblemAt(nil, "it is wrong")
	if got := plain.FormatLine(); got != ":1:1 it is wrong" {
		t.Errorf("without a code it is %q", got)
	}
	if got := plain.WithCode("test_failed").WithCode("replay_error"); got.Code != "test_failed" {
		t.Errorf("a second code took the place of the first: %+v", got)
	}
}

// What is wrong may be anything: all of a file on one line, or what a terminal obeys.
func TestMessagesAreForReading(t *testing.T) {
	for name, tc := range map[string]struct{ source, want, never string }{
		"a line that is a file":      {"package a\nb := [" + strings.Repeat("1, ", 100_000), "...", ""},
		"a name that is a file":      {"package a\nb := " + strings.Repeat("x", 100_000) + "(1)\n}", "", ""},
		"what a terminal obeys":      {"package a\nb := \"\x1b[31m", "\\u001b[31m", "\x1b"},
		"what is no text":            {"package a\n# \xff\n", "\\ufffd", "\xff"},
		"letters of other alphabets": {"package a\n# é 猫\nb := é", "é", "\\u"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := module.Parse("a.rego", tc.source)
			var ps module.Problems
			if !errors.As(err, &ps) {
				t.Fatalf("got %v", err)
			}
			for _, p := range ps {
				if len(p.Message) > 2000 || !strings.Contains(p.Message, tc.want) || tc.never != "" && strings.Contains(p.Message, tc.never) {
					t.Errorf("got %d bytes: %.600q", len(p.Message), p.Message)
				}
			}
		})
	}
}
