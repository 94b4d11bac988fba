// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/gobuild"
)

// Ensure returns the path of each named program, building those that neither
// the machine nor the cache has. It reports what it does on progress.
func Ensure(ctx context.Context, cache string, progress io.Writer, names ...string) (map[string]string, error) {
	paths, missing, err := look(ctx, cache, names...)
	if err != nil {
		return nil, err
	}
	if len(missing) == 0 {
		return paths, nil
	}
	// One builder at a time: two would compile the same packages twice and
	// fight for memory. A builder that waited finds the work done.
	unlock, err := Lock(ctx, filepath.Join(cache, "build.lock"), func() {
		fmt.Fprintln(progress, "another start is building the programs; waiting for it")
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	started := time.Now()
	for i, program := range missing {
		path := program.cachePath(cache)
		paths[program.Name] = path
		if _, err := os.Stat(path); err == nil {
			continue
		}
		label := fmt.Sprintf("building %s %s (%d of %d)", program.Name, program.Version, i+1, len(missing))
		fmt.Fprintf(progress, "%s, %s so far\n", label, time.Since(started).Round(time.Second))
		if err := build(ctx, program, path, progress, label, started); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// Path returns where one program is. It is built if need be, as by Ensure, into
// the cache that all share.
func Path(ctx context.Context, progress io.Writer, name string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	paths, err := Ensure(ctx, cache, progress, name)
	return paths[name], err
}

// Find returns the path of each named program if the machine or the cache has
// all of them.
func Find(ctx context.Context, cache string, names ...string) (map[string]string, bool) {
	paths, missing, err := look(ctx, cache, names...)
	return paths, err == nil && len(missing) == 0
}

// look returns the paths of the named programs that the machine or the cache
// has, and the programs that neither has.
func look(ctx context.Context, cache string, names ...string) (paths map[string]string, missing []Program, err error) {
	programs, err := Select(names...)
	if err != nil {
		return nil, nil, err
	}
	paths = map[string]string{}
	for _, program := range programs {
		if path, ok := locate(ctx, cache, program); ok {
			paths[program.Name] = path
		} else {
			missing = append(missing, program)
		}
	}
	return paths, missing, nil
}

func locate(ctx context.Context, cache string, program Program) (string, bool) {
	// The cache first: asking programs on PATH for their version takes time.
	path := program.cachePath(cache)
	if _, err := os.Stat(path); err == nil {
		return path, true
	}
	return installed(ctx, program)
}

// build compiles a program into path, and prints progress under a label.
func build(ctx context.Context, program Program, path string, out io.Writer, label string, started time.Time) error {
	source, err := sourceDir(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the cache directory: %w", err)
	}
	// A build that is killed half-way must not leave a program that looks done.
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	defer os.Remove(temporary)
	directory := filepath.Join(source, program.Module)
	build := gobuild.Build{
		Label: label, Dir: directory, Package: program.Package,
		// No -trimpath: the product is built without it, and one set of flags lets
		// programs share what is compiled.
		Command: gobuild.Command(ctx, directory, "build", "-v", "-mod=readonly", "-buildvcs=false",
			"-ldflags", program.linkerFlags(), "-o", temporary, program.Package),
	}
	if err := build.Run(ctx, out, started); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("keeping %s: %w", program.Name, err)
	}
	return nil
}

// sourceDir finds test/cluster, whose sub-directories pin the programs.
func sourceDir(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/regatta-sh/regatta/test/cluster/binaries")
	output, err := command.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			return "", fmt.Errorf("finding the Regatta sources (run this inside a checkout): %w: %s", err, bytes.TrimSpace(failed.Stderr))
		}
		return "", fmt.Errorf("finding the Regatta sources (is Go installed?): %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(output))), nil
}
