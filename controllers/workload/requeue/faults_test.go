// SPDX-License-Identifier: Apache-2.0

package requeue_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// kindsOfRollout are the folders whose controllers are made by package rollout.
func kindsOfRollout() []string {
	return []string{"controllers/cloneset", "controllers/daemonset", "controllers/sidecarset", "controllers/statefulset"}
}

// Each controller has a scenario in which each of its calls fails.
func TestAllControllersAreTestedWithFaults(t *testing.T) {
	folders := append(slices.Collect(maps.Keys(controllers)), kindsOfRollout()...)
	for _, folder := range folders {
		if folder == "controllers/workload/rollout" {
			continue // its kinds are
		}
		if !runsFaultScenario(t, folder) {
			t.Errorf("no test of %s runs a faultinjection.Scenario", folder)
		}
	}
}

// runsFaultScenario reports whether a test file of a folder makes a Scenario.
func runsFaultScenario(t *testing.T, folder string) (found bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.CompositeLit); ok {
				if s, ok := literal.Type.(*ast.SelectorExpr); ok {
					p, ok := s.X.(*ast.Ident)
					found = found || ok && p.Name == "faultinjection" && s.Sel.Name == "Scenario"
				}
			}
			return !found
		})
	}
	return found
}
