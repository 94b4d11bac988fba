// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A build counts the packages that it compiles, and a failed one tells what the
// compiler said of them.
func TestABuildCountsItsPackages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The module's path is unique, so that the cache of Go has none of it.
	module := "example.com/" + filepath.Base(filepath.Dir(dir)) + filepath.Base(dir)
	write("go.mod", "module "+module+"\n\ngo 1.26.0\n")
	write("part/part.go", "package part\n\nconst One = 1\n")
	write("main.go", "package main\n\nimport \""+module+"/part\"\n\nfunc main() { println(part.One) }\n")
	build := func() (compiled, all int64, rest string, err error) {
		stale, err := stalePackages(t.Context(), dir, ".")
		if err != nil {
			t.Fatal(err)
		}
		var far count
		rest, err = run(Command(t.Context(), dir, "build", "-v", "-buildvcs=false", "-o", filepath.Join(dir, "program"), "."), stale, &far)
		return far.compiled.Load(), int64(len(stale)), rest, err
	}

	if compiled, all, rest, err := build(); err != nil || rest != "" || all < 2 || compiled != all {
		t.Errorf("the first build: %d of %d packages, %q, %v", compiled, all, rest, err)
	}
	if compiled, _, rest, err := build(); err != nil || compiled != 0 {
		t.Errorf("once more: %d packages, %q, %v", compiled, rest, err)
	}
	write("part/part.go", "package part\n\nconst One = two\n")
	if _, _, rest, err := build(); err == nil || !strings.Contains(rest, "undefined: two") {
		t.Errorf("a broken one: %q, %v", rest, err)
	}
}

func TestHowFarABuildIs(t *testing.T) {
	for _, test := range []struct {
		compiled, all int64
		want          string
	}{
		{0, 0, ""},
		{0, 9, ", 0 of 9 packages compiled"},
		{8, 9, ", 8 of 9 packages compiled"},
		{9, 9, ", linking"},
	} {
		var far count
		far.compiled.Store(test.compiled)
		far.all.Store(test.all)
		if got := far.String(); got != test.want {
			t.Errorf("%d of %d: %q, want %q", test.compiled, test.all, got, test.want)
		}
	}
}
