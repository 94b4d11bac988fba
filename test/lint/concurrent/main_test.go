// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPackagesWithGoroutinesAreListed(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"plain/a.go":              "package a\n\nfunc Add(a, b int) int { return a + b }\n",
		"starts/a.go":             "package a\n\nfunc F() { go F() }\n",
		"channel/a.go":            "package a\n\nvar C chan int\n",
		"locks/a.go":              "package a\n\nimport _ \"sync\"\n",
		"tested/a.go":             "package a\n",
		"tested/a_test.go":        "package a\n\nfunc f(t interface{ Parallel() }) { t.Parallel() }\n",
		"decides/inner/a_test.go": "package a_test\n\nimport _ \"github.com/regatta-sh/regatta/engine\"\n",
		"a.go":                    "package a\n\nfunc F() { select {} }\n",
		"plain/testdata/a.go":     "package a\n\nfunc F() { go F() }\n",
		"other/go.mod":            "module other\n",
		"other/a.go":              "package a\n\nfunc F() { go F() }\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := listPackages(root, &out); err != nil {
		t.Fatal(err)
	}
	want := []string{module, module + "/channel", module + "/decides/inner", module + "/locks", module + "/starts", module + "/tested"}
	if got := strings.Fields(out.String()); !slices.Equal(got, want) {
		t.Errorf("it lists\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The packages of this repository whose parts run beside each other are among those that are tested with the race detector.
func TestPackagesOfThisRepositoryAreListed(t *testing.T) {
	var out bytes.Buffer
	if err := listPackages(filepath.Join("..", "..", ".."), &out); err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(out.String())
	for _, want := range []string{"engine", "engine/shadow", "controllers/reconcile", "controllers/cloneset", "controllers/policyhost", "controllers/manager", "controllers/accounting", "nodeagent/agent"} {
		if !slices.Contains(got, module+"/"+want) {
			t.Errorf("%s is not among those that are tested with the race detector", want)
		}
	}
}

func TestAFileThatIsNotGoIsAnError(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("packag"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := listPackages(root, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "a.go") {
		t.Errorf("the error is %v, want one that names the file", err)
	}
}
