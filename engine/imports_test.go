package engine_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestTheEngineKnowsNothingOfKubernetes holds the library to what it promises;
// the command line may ask a cluster.
func TestTheEngineKnowsNothingOfKubernetes(t *testing.T) {
	packages, err := exec.CommandContext(t.Context(), "go", "list", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"list", "-deps"}
	for _, p := range strings.Fields(string(packages)) {
		if !strings.Contains(p, "/engine/cmd/regatta") {
			args = append(args, p)
		}
	}
	deps, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	formats := []string{"sigs.k8s.io/yaml", "sigs.k8s.io/json"} // they know nothing of it either
	for _, d := range strings.Fields(string(deps)) {
		format := slices.ContainsFunc(formats, func(f string) bool { return d == f || strings.HasPrefix(d, f+"/") })
		if !format && (strings.HasPrefix(d, "k8s.io/") || strings.HasPrefix(d, "sigs.k8s.io/")) {
			t.Errorf("the engine imports %s", d)
		}
	}
}
