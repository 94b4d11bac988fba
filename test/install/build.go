// SPDX-License-Identifier: Apache-2.0

// Package install puts Regatta on a cluster the way a user does, with Helm, for
// the demonstration, the end-to-end tests and the measurements.
package install

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/gobuild"
)

// Build compiles our programs into dir, statically, so that an image needs
// nothing else, and returns their paths by name. The Makefile does it: how they
// are built is said there alone.
func Build(ctx context.Context, root, dir string, out io.Writer) (map[string]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of programs: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making %s: %w", dir, err)
	}
	paths := map[string]string{}
	for _, program := range []struct{ name, main string }{
		{"kruise-manager", "./controllers/cmd/manager"},
		{"kruise-daemon", "./nodeagent/cmd/daemon"},
		{"regatta", "./controllers/cmd/regatta"},
	} {
		name, started := program.name, time.Now()
		paths[name] = filepath.Join(dir, name)
		command := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", root, name, "BIN="+dir, "BUILDFLAGS=-v")
		build := gobuild.Build{Label: "  building " + name, Dir: root, Package: program.main, Command: command}
		if err := build.Run(ctx, out, started); err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "  %-28s %6.1fs\n", name, time.Since(started).Seconds())
	}
	return paths, nil
}

// Root is the folder of this module, from any folder in it.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "charts", "kruise", "Chart.yaml")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("finding the source: no folder above the working directory has charts/kruise")
		}
		dir = parent
	}
}
