// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/module"
)

// minCoverage is how many percent of the lines of policies their own tests must
// evaluate, here and in each example.
const minCoverage = 95

// TestRego runs every _test.rego: those of the built-in bundle by itself, and
// those of each example beside it, as a user would.
func TestRego(t *testing.T) {
	for _, under := range regoTests(t) {
		t.Run(under, func(t *testing.T) {
			modules := builtinModules(t)
			tested := map[string]bool{}
			walk(t, os.DirFS("."), func(name string) {
				if !strings.HasSuffix(name, ".rego") || path.Dir(name) != under {
					return
				}
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				modules[name] = parse(t, name, string(text))
				tested[name] = !module.IsTest(name)
			})
			b, err := bundle.FromFS(path.Base(under), os.DirFS(under))
			if err != nil {
				t.Fatal(err)
			}
			covered := runRego(t, modules, b.Data)
			var lines, hit int
			for name, file := range covered.Files {
				if tested[name] {
					hit, lines = hit+file.CoveredLines, lines+file.CoveredLines+file.NotCoveredLines
					for _, r := range file.NotCovered {
						t.Logf("%s:%d is not covered", name, r.Start.Row)
					}
				}
			}
			percent := 100 * float64(hit) / float64(lines)
			t.Logf("coverage of %s: %.1f %% of %d lines", under, percent, lines)
			if percent < minCoverage {
				t.Errorf("coverage of %s is %.1f %%, want at least %d %%", under, percent, minCoverage)
			}
		})
	}
}

// regoTests are the folders that have tests of policies.
func regoTests(t *testing.T) []string {
	t.Helper()
	var folders []string
	walk(t, os.DirFS("."), func(name string) {
		if folder := path.Dir(name); module.IsTest(name) && (len(folders) == 0 || folders[len(folders)-1] != folder) {
			folders = append(folders, folder)
		}
	})
	return folders
}

// runRego compiles modules as the engine does and runs the tests among them, with
// data beside.
func runRego(t *testing.T, modules map[string]*ast.Module, data map[string]any) cover.Report {
	t.Helper()
	compiler := ast.NewCompiler().WithStrict(true).WithCapabilities(module.PolicyCapabilities()).
		WithDefaultRegoVersion(ast.RegoV2).WithEnablePrintStatements(true)
	tracer := cover.New()
	results, err := tester.NewRunner().SetCompiler(compiler).SetModules(modules).SetCoverageQueryTracer(tracer).
		SetStore(inmem.NewFromObject(data)).
		RaiseBuiltinErrors(true).SetTimeout(time.Minute).RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for result := range results {
		ran++
		if !result.Pass() {
			t.Errorf("%s: %v", result, result.Error)
		}
	}
	if ran == 0 {
		t.Error("there is no test")
	}
	return tracer.Report(modules)
}

// TestNoPolicyIsWithoutATest finds policies without a _test.rego beside them. Those below docs are what its pages show,
// which tests of the pages evaluate.
func TestNoPolicyIsWithoutATest(t *testing.T) {
	files := os.DirFS(".")
	walk(t, files, func(name string) {
		if strings.HasSuffix(name, ".rego") && !module.IsTest(name) && !strings.HasPrefix(name, "docs/") {
			if _, err := fs.Stat(files, strings.TrimSuffix(name, ".rego")+"_test.rego"); err != nil {
				t.Errorf("%s has no test beside it", name)
			}
		}
	})
}
