package chart_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/regatta-sh/regatta/test/cluster/binaries"
)

// findHelm returns the Helm to test with: $HELM, or the pinned one, which is
// built once into the cache of the local cluster if the machine has none.
func findHelm(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("HELM"); path != "" {
		return path
	}
	if testing.Short() {
		path, err := exec.LookPath("helm")
		if err != nil {
			t.Skip("building Helm takes minutes; -short leaves it out")
		}
		return path
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := binaries.Ensure(t.Context(), cache, os.Stderr, "helm")
	if err != nil {
		t.Fatal(err)
	}
	return paths["helm"]
}

func TestHelmIsThere(t *testing.T) {
	t.Log(findHelm(t))
}
