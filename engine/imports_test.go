package engine_test

import (
	"os/exec"
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
	for _, d := range strings.Fields(string(deps)) {
		if strings.HasPrefix(d, "k8s.io/") || strings.HasPrefix(d, "sigs.k8s.io/") && !strings.HasPrefix(d, "sigs.k8s.io/yaml") {
			t.Errorf("the engine imports %s", d)
		}
	}
}
