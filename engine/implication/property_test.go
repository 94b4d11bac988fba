// SPDX-License-Identifier: Apache-2.0

package implication_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/engine/implication"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/engine/term"
)

func bothInputs() implication.Inputs {
	return implication.Inputs{reflect.TypeFor[first](), reflect.TypeFor[second]()}
}

const head = "package extend.test.a\n\nimport future.keywords.not\n\n"

// program is compiled rules.
type program struct {
	t      *rapid.T
	module *ast.Module
	query  rego.PreparedEvalQuery
}

// compileRules reads rules; nil if OPA does not compile them.
func compileRules(t *rapid.T, text string) *program {
	m, err := module.Parse("a.rego", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	c, err := module.Compile(map[string]*ast.Module{"a.rego": m})
	if err != nil {
		return nil
	}
	// The module stays as it was read: the compiler has a copy.
	q, err := module.PrepareQuery(t.Context(), rego.New(rego.Compiler(c), rego.Query("data.extend.test.a"), rego.StrictBuiltinErrors(true)))
	if err != nil {
		t.Fatal(err)
	}
	return &program{t, m, q}
}

// evaluateRules returns the values of all rules; false if the evaluation fails.
func (p *program) evaluateRules(in any) (map[string]any, bool) {
	var codec term.Codec
	value, err := codec.Encode(in)
	if err != nil {
		p.t.Fatal(err)
	}
	rs, err := p.query.Eval(p.t.Context(), rego.EvalParsedInput(value))
	if err != nil || len(rs) != 1 {
		return nil, false
	}
	out, ok := rs[0].Expressions[0].Value.(map[string]any)
	return out, ok
}

func (p *program) readRule(name string) *implication.Body {
	for _, r := range p.module.Rules {
		if r.Head.Ref()[0].String() == name {
			body, ok := implication.NewReader(map[string]*ast.Module{"a.rego": p.module}).ReadRule(p.module, r)
			if !ok {
				p.t.Fatalf("%s is not read", name)
			}
			return body
		}
	}
	p.t.Fatalf("there is no rule %s", name)
	return nil
}

func ruleText(name, key string, body []string) string {
	return fmt.Sprintf("%s contains %s if {\n\t%s\n}\n\n", name, key, strings.Join(body, "\n\t"))
}

// TestWhatIsFoundIsSo draws rules and inputs, and asks OPA.
func TestWhatIsFoundIsSo(t *testing.T) {
	claims := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		r := &rules{t: t}
		before := head + r.helperRules()
		body := r.drawBody(6)
		text := before + ruleText("hit", "["+strings.Join(r.vars, ", ")+"]", body)
		p := compileRules(t, text)
		if p == nil {
			claims["not compiled"]++
			return
		}
		claims["compiled"]++
		b := p.readRule("hit")
		if no, found := b.FindContradiction(bothInputs()); found {
			claims["never"]++
			for range 40 {
				in := drawInput(t)
				if got, ok := p.evaluateRules(in); ok && len(got["hit"].([]any)) > 0 {
					t.Fatalf("it is true of %+v, and is to be never, since %+v\n%s", in, no, text)
				}
			}
			return
		}
		less := b.FindRedundancies(bothInputs())
		if len(less) == 0 {
			return
		}
		claims["redundant"]++
		lines := strings.Split(text, "\n")
		for _, one := range less {
			lines[one.Condition.Location.Row-1] = ""
		}
		if reduced := strings.Join(lines, "\n"); len(less) == len(body) {
			lines = strings.Split(strings.Replace(reduced, "hit contains [] if {", "hit contains [] if {\n\ttrue", 1), "\n")
		}
		q := compileRules(t, strings.Join(lines, "\n"))
		if q == nil {
			t.Fatalf("it does not compile without %+v\n%s", less, text)
		}
		for range 40 {
			in := drawInput(t)
			was, ok := p.evaluateRules(in)
			if !ok {
				continue
			}
			is, ok := q.evaluateRules(in)
			if !ok || !reflect.DeepEqual(was["hit"], is["hit"]) {
				t.Fatalf("of %+v it is %v, and %v without %+v\n%s", in, was["hit"], is["hit"], less, text)
			}
		}
	})
	t.Logf("%v", claims)
	if claims["never"] < 10 || claims["redundant"] < 5 || claims["compiled"] < claims["not compiled"] {
		t.Errorf("too little was claimed: %v", claims)
	}
}

// TestWhatIsCoveredIsCovered draws two holds and inputs, and asks OPA.
func TestWhatIsCoveredIsCovered(t *testing.T) {
	claims := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		r := &rules{t: t}
		text := head + r.helperRules()
		var bodies [][]string
		var elements [][]string
		for range 2 {
			bodies = append(bodies, r.drawBody(4))
			elements = append(elements, r.elements)
		}
		if r.isChosen(2) { // otherwise one is rarely as strict as the other
			bodies[1] = append(append([]string{}, bodies[0]...), r.drawQuestion(1))
			elements[1] = elements[0]
		}
		key := func(i int) string {
			if len(elements[i]) > 0 && !r.isChosen(3) {
				return `{"message": ` + r.oneOf(`"m"`, `sprintf("%v", [input.n.x])`) + `, "pod": ` + elements[i][0] + ".s}"
			}
			return `{"message": ` + r.oneOf(`"m"`, `sprintf("%v", [input.a])`, "input.t") + "}"
		}
		for i := range bodies {
			for _, x := range bodies[i] { // strict: a variable must be used
				if name, _, ok := strings.Cut(strings.TrimPrefix(x, "some "), " "); ok && len(name) == 2 && strings.Contains("vew", name[:1]) {
					bodies[i] = append(bodies[i], name+` != "never"`)
				}
			}
			text += ruleText([]string{"covering", "covered"}[i], key(i), bodies[i])
		}
		p := compileRules(t, text)
		if p == nil {
			claims["not compiled"]++
			return
		}
		claims["compiled"]++
		of, by := p.readRule("covered"), p.readRule("covering")
		pod := func(key *ast.Term) *ast.Term { return key.Value.(ast.Object).Get(ast.StringTerm("pod")) }
		if _, never := of.FindContradiction(bothInputs()); never || !of.IsCovered(by, bothInputs(), func(key *ast.Term) bool {
			return pod(key) == nil || pod(of.Key) != nil && pod(key).Equal(pod(of.Key))
		}) {
			return
		}
		claims["covered"]++
		for range 40 {
			in := drawInput(t)
			got, ok := p.evaluateRules(in)
			if !ok {
				continue
			}
			for _, hold := range got["covered"].([]any) {
				found := false
				for _, other := range got["covering"].([]any) {
					limit, limited := other.(map[string]any)["pod"]
					found = found || !limited || reflect.DeepEqual(limit, hold.(map[string]any)["pod"])
				}
				if !found {
					t.Fatalf("of %+v it is true alone: %v, and %v\n%s", in, hold, got["covering"], text)
				}
			}
		}
	})
	t.Logf("%v", claims)
	if claims["covered"] < 5 {
		t.Errorf("too little was claimed: %v", claims)
	}
}
