// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/regatta-sh/regatta/controllers/webhookconfig/expression"
	"github.com/regatta-sh/regatta/engine/decision/protection"
)

func environment(t testing.TB) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// evaluator evaluates match conditions, and compiles each expression once.
type evaluator struct {
	env      *cel.Env
	programs map[string]cel.Program
}

func newEvaluator(t testing.TB) *evaluator {
	t.Helper()
	return &evaluator{environment(t), map[string]cel.Program{}}
}

// meets reports whether all match conditions of an entry are true for a request.
func (e *evaluator) meets(t testing.TB, w admissionv1.ValidatingWebhook, request map[string]any) bool {
	t.Helper()
	for _, c := range w.MatchConditions {
		program := e.programs[c.Expression]
		if program == nil {
			ast, issues := e.env.Compile(c.Expression)
			if issues.Err() != nil {
				t.Fatalf("%s: %v", c.Expression, issues.Err())
			}
			var err error
			if program, err = e.env.Program(ast); err != nil {
				t.Fatal(err)
			}
			e.programs[c.Expression] = program
		}
		out, _, err := program.Eval(request)
		if err != nil {
			t.Fatalf("%s: %v", c.Expression, err)
		}
		if out.Value() != true {
			return false
		}
	}
	return true
}

// A text is a text, whatever is in it.
func FuzzLiteral(f *testing.F) {
	for _, text := range []string{"", "gold", `'`, `"`, `\`, `\'`, `' || true || '`, "\n\x00\x7f", "ü😀\U0010ffff", "'''", "\xff"} {
		f.Add(text)
	}
	env := environment(f)
	f.Fuzz(func(t *testing.T, text string) {
		ast, issues := env.Compile(expression.TextLiteral(text))
		if issues.Err() != nil {
			t.Fatalf("%s: %v", expression.TextLiteral(text), issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := program.Eval(map[string]any{})
		if want := strings.ToValidUTF8(text, string(utf8.RuneError)); err != nil || strings.ToValidUTF8(text, "?") == text && got.Value() != want {
			t.Errorf("%s is %q, want %q: %v", expression.TextLiteral(text), got.Value(), want, err)
		}
	})
}

// Nothing that a user's guard says makes a condition anything but a condition on
// what it is about.
func FuzzConditions(f *testing.F) {
	f.Add("tier", "gold", "shop", "batch", "cronjobs")
	f.Add(`'] == '' || true || x['`, `\`, "'", "", "pods")
	f.Add("", "", "", "", "configmaps")
	f.Fuzz(func(t *testing.T, key, value, ns, group, resource string) {
		if !utf8.ValidString(key + value + ns) {
			t.Skip("JSON has no such text")
		}
		g := protection.Guard{Group: group, Resource: resource, Operations: []string{protection.Delete}, Namespaces: []string{ns}, Labels: map[string]string{key: value}}
		fs := renderFacts{Config: installation(), gates: allGates(), call: service()}
		if fs.kinds, fs.users, _ = filterGuarded(protection.GuardsOutput{Kinds: someKinds(), Guards: []protection.Guard{g}}, fs.gates, true); len(fs.users) == 0 {
			return
		}
		r, err := renderWebhooks(fs)
		if err != nil {
			t.Fatal(err)
		}
		asks := func(labels map[string]any, namespace string) bool {
			all := true
			for _, w := range r.validating {
				if w.Name != "vpod.kb.io" && w.Name != "vguard.kb.io" {
					continue
				}
				all = all && newEvaluator(t).meets(t, w, map[string]any{
					"object": nil, "oldObject": map[string]any{"metadata": map[string]any{"labels": labels}},
					"request": map[string]any{"operation": "DELETE", "namespace": namespace, "resource": map[string]any{"group": group, "resource": resource}},
				})
			}
			return all
		}
		if !asks(map[string]any{key: value}, ns) && key != "policy.kruise.io/delete-protection" {
			t.Errorf("%v is not about what it says", g)
		}
		if asks(map[string]any{key: value + "x"}, ns) || asks(map[string]any{}, ns) || asks(map[string]any{key: value}, ns+"x") {
			t.Errorf("%v is about more than it says", g)
		}
	})
}
