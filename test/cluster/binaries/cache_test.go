// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCachePathFollowsVersionAndFlags(t *testing.T) {
	program := Programs()[0]
	other, flags := program, program
	other.Version = "v1.0.0"
	flags.ldflags = append([]string{"-X a=b"}, flags.ldflags...)
	path := program.cachePath("/cache")
	if path == other.cachePath("/cache") {
		t.Error("another version has the same path")
	}
	if path == flags.cachePath("/cache") {
		t.Error("other linker flags have the same path")
	}
	if filepath.Base(path) != program.Name {
		t.Errorf("the program is called %s", filepath.Base(path))
	}
}

func TestLinkMakesOneDirectoryForPath(t *testing.T) {
	cache := t.TempDir()
	program := filepath.Join(cache, "kubectl")
	if err := os.WriteFile(program, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	first, err := Link(cache, map[string]string{"kubectl": program})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Link(cache, map[string]string{"kubectl": program})
	if err != nil || again != first {
		t.Errorf("linking again gives %s, %v", again, err)
	}
	if target, err := os.Readlink(filepath.Join(first, "kubectl")); err != nil || target != program {
		t.Errorf("the link leads to %s, %v", target, err)
	}
	other, err := Link(cache, map[string]string{"kubectl": "/usr/bin/kubectl"})
	if err != nil || other == first {
		t.Errorf("another kubectl goes to the same directory %s, %v", other, err)
	}
}

func TestLockAdmitsOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "lock")
	unlock, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	told := 0
	if _, err := Lock(limited, path, func() { told++ }); err == nil {
		t.Error("a second holder got the lock")
	}
	if told != 1 {
		t.Errorf("the waiting was told %d times", told)
	}
	unlock()
	unlock, err = Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
