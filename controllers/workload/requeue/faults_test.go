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

// withoutFaultScenario are the folders with controllers that no test of package faultinjection runs, and why.
func withoutFaultScenario() map[string]string {
	return map[string]string{
		"controllers/policybundle": "it has requests of its own type, and its own tests of failed fetches",
	}
}

// Each controller has a scenario in which each of its calls fails, or a reason for having none.
func TestAllControllersAreTestedWithFaults(t *testing.T) {
	folders := append(slices.Collect(maps.Keys(controllers)), kindsOfRollout()...)
	missing := withoutFaultScenario()
	for _, folder := range folders {
		if folder == "controllers/workload/rollout" {
			continue // its kinds are
		}
		why, excused := missing[folder]
		switch tested := runsFaultScenario(t, folder); {
		case !tested && !excused:
			t.Errorf("no test of %s runs a faultinjection.Scenario", folder)
		case tested && excused:
			t.Errorf("%s runs a faultinjection.Scenario, and is listed as one that does not since %s", folder, why)
		}
		delete(missing, folder)
	}
	for folder := range missing {
		t.Errorf("%s has no controller", folder)
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
