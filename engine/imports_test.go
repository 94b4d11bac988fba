// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestTheEngineKnowsNothingOfKubernetes holds the library to what it promises:
// no package below engine, generators included, depends on a controller, on
// client-go, on the API machinery or on controller-runtime.
func TestTheEngineKnowsNothingOfKubernetes(t *testing.T) {
	packages, err := exec.CommandContext(t.Context(), "go", "list", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(packages))); n < 10 {
		t.Fatalf("go list found %d packages below engine", n)
	}
	args := append([]string{"list", "-deps", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`}, strings.Fields(string(packages))...)
	deps, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(deps)) {
		names := strings.Fields(line)
		for _, imported := range names[1:] {
			if foreign(imported) && !foreign(names[0]) {
				t.Errorf("%s imports %s", names[0], imported)
			}
		}
	}
}

// foreign reports whether the engine must not depend on a package.
func foreign(imported string) bool {
	within := func(prefix string) bool { return imported == prefix || strings.HasPrefix(imported, prefix+"/") }
	if slices.ContainsFunc([]string{"sigs.k8s.io/yaml", "sigs.k8s.io/json"}, within) { // formats, which know nothing of Kubernetes
		return false
	}
	return slices.ContainsFunc([]string{"k8s.io", "sigs.k8s.io", "github.com/regatta-sh/regatta/controllers", "github.com/regatta-sh/regatta/nodeagent"}, within)
}
