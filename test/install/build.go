// SPDX-License-Identifier: Apache-2.0

// Package install puts Regatta on a cluster the way a user does, with Helm, for
// the demonstration, the end-to-end tests and the measurements.
package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/gobuild"
)

// Build compiles Regatta's programs into dir, statically, so that an image needs
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

// Temporary builds Regatta's programs into a folder of its own, and returns how to remove it.
func Temporary(ctx context.Context, out io.Writer) (map[string]string, func() error, error) {
	root, err := Root()
	if err != nil {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "regatta-programs-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder for the programs: %w", err)
	}
	programs, err := Build(ctx, root, filepath.Join(folder, "bin"), out)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	return programs, func() error { return os.RemoveAll(folder) }, nil
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
