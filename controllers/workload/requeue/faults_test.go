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

// withoutWaits are folders whose controllers have no test of a wait, and why.
func withoutWaits() map[string]string {
	return map[string]string{
		"controllers/gatedkinds": "the condition that it writes is itself what says of a wait",
		"controllers/policyhost": "it writes nothing: those who ask it tell of their answers",
	}
}

// Each controller has a test of a wait that ends well, in which an object says what is waited for, or an event does all the while.
func TestAllControllersAreTestedWithWaits(t *testing.T) {
	folders := append(slices.Collect(maps.Keys(controllers)), kindsOfRollout()...)
	exempt := withoutWaits()
	for _, folder := range folders {
		_, none := exempt[folder]
		delete(exempt, folder)
		if has := callsRunWait(t, folder); has == none && folder != "controllers/workload/rollout" {
			t.Errorf("a test of %s calls RunWait: %t; it is listed as one without: %t", folder, has, none)
		}
	}
	for folder := range exempt {
		t.Errorf("%s has no controller", folder)
	}
}

// callsRunWait reports whether a test file of a folder calls RunWait of a Scenario.
func callsRunWait(t *testing.T, folder string) bool {
	t.Helper()
	return findInTests(t, folder, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		return ok && method.Sel.Name == "RunWait"
	})
}

// runsFaultScenario reports whether a test file of a folder makes a Scenario.
func runsFaultScenario(t *testing.T, folder string) bool {
	t.Helper()
	return findInTests(t, folder, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return false
		}
		s, ok := literal.Type.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		p, ok := s.X.(*ast.Ident)
		return ok && p.Name == "faultinjection" && s.Sel.Name == "Scenario"
	})
}

// findInTests reports whether a test file of a folder has a node that is.
func findInTests(t *testing.T, folder string, is func(ast.Node) bool) (found bool) {
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
			found = found || n != nil && is(n)
			return !found
		})
	}
	return found
}
