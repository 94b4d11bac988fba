// SPDX-License-Identifier: Apache-2.0

package module

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/regatta-sh/regatta/policies"
)

// Compilers of the same modules run beside each other: no parsed module and no type is written to that another one reads. It is for the
// race detector.
func TestCompilersRunBesideEachOther(t *testing.T) {
	modules := map[string]*ast.Module{}
	if err := fs.WalkDir(policies.Builtin, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".rego") || IsTest(file) {
			return err
		}
		text, err := fs.ReadFile(policies.Builtin, file)
		if err == nil {
			modules[file], err = Parse(file, string(text))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var builtins strings.Builder
	for i, b := range PolicyCapabilities().Builtins {
		args := make([]string, b.Decl.Arity())
		for j := range args {
			args[j] = "input.x"
		}
		if strings.Contains(b.Name, "print") || b.Infix != "" || strings.HasPrefix(b.Name, "internal.") || b.IsDeprecated() || len(args) == 0 {
			continue
		}
		fmt.Fprintf(&builtins, "x contains {\"%d\": {\"a\": %s(%s)}}\n", i, b.Name, strings.Join(args, ", "))
		fmt.Fprintf(&builtins, "y[k] := %s(%s) if some k in {\"%d\"}\ny[k] := {\"z\": {\"a\": {}}} if some k in {\"%d\"}\n", b.Name, strings.Join(args, ", "), i, i)
	}
	for i, name := range []string{"object.union(input.a, input.b)", "object.union_n(input.c)", "object.remove(input.a, input.b)"} {
		fmt.Fprintf(&builtins, "z%d := %s if input.p == 1\nz%[1]d := \"s\" if input.p == 2\nz%[1]d := {k: v | some k, v in input.c} if input.p == 3\n", i, name)
	}
	m, err := Parse("builtins.rego", "package extend.rollout.builtins\n"+builtins.String())
	if err != nil {
		t.Fatal(err)
	}
	modules["builtins.rego"] = m
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			c := NewCompiler()
			if c.Compile(modules); c.Failed() {
				t.Error(c.Errors)
				return
			}
			if _, err := rego.New(rego.Query("data.rollout"), rego.Compiler(c)).PrepareForEval(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}
