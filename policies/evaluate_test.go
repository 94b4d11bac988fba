// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/module"
	"github.com/regatta-sh/regatta/policies"
)

// fataler is what of a test is needed; rapid has its own.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// evaluate asks the built-in bundle, and those of users if there are any, and
// returns the answer as a JSON document. Errors of built-in functions fail it,
// as they do in the engine.
func evaluate(t fataler, point decision.Name, input any, bundles map[string]string) any {
	t.Helper()
	query := prepared(t, point, bundles)
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	value, err := ast.ValueFromReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	set, err := query.Eval(context.Background(), rego.EvalParsedInput(value))
	if err != nil || len(set) != 1 {
		t.Fatal("evaluating", point, "has", len(set), "results and the error", err)
	}
	// The answer has json.Number; a document of its own has what YAML gives too.
	text, err = json.Marshal(set[0].Expressions[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	var answer any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

var builtinQueries sync.Map // by point, since compiling takes longer than asking

func prepared(t fataler, point decision.Name, bundles map[string]string) rego.PreparedEvalQuery {
	t.Helper()
	if query, ok := builtinQueries.Load(point); ok && len(bundles) == 0 {
		return query.(rego.PreparedEvalQuery)
	}
	modules := builtinModules(t)
	for path, text := range bundles {
		modules["user/"+path] = parse(t, "user/"+path, text)
	}
	compiler, err := module.Compile(modules)
	if err != nil {
		t.Fatal(err)
	}
	query, err := rego.New(
		rego.Query("data."+strings.ReplaceAll(string(point), "/", ".")),
		rego.Compiler(compiler), rego.StrictBuiltinErrors(true),
	).PrepareForEval(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(bundles) == 0 {
		builtinQueries.Store(point, query)
	}
	return query
}

func builtinModules(t fataler) map[string]*ast.Module {
	t.Helper()
	modules := map[string]*ast.Module{}
	err := fs.WalkDir(policies.Builtin, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(policies.Builtin, path)
		if err == nil {
			modules[path] = parse(t, path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

func parse(t fataler, path, text string) *ast.Module {
	t.Helper()
	parsed, err := module.Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
