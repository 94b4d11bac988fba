// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// serving is the name of the process with the registry and the provisioner.
const serving = "serve"

// self is the cluster's own copy of the cluster command: `go run` and `go test`
// remove the programs that they build.
func (c *Cluster) self() string { return c.State.Path("bin", "cluster") }

// buildSelf builds the cluster command for a caller that is another program,
// such as a test, and returns where, and how to remove it. It is built as
// `go run` would, so that each finds the other's work in Go's cache.
func buildSelf(ctx context.Context, cache string, out io.Writer) (path string, remove func(), err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", nil, fmt.Errorf("making the cache directory: %w", err)
	}
	removeStale(cache)
	dir, err := os.MkdirTemp(cache, selfPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("making a directory for the cluster command: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "cluster")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/regatta-sh/regatta/test/cluster")
	err = step(out, "building the cluster command", func() error {
		if output, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building the cluster command: %w\n%s", err, bytes.TrimSpace(output))
		}
		return nil
	})
	if err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

const selfPrefix = "self-"

// removeStale removes what builds that were killed have left in the cache.
func removeStale(cache string) {
	left, err := filepath.Glob(filepath.Join(cache, selfPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(dir)
		}
	}
}

// installSelf copies the cluster command into the cluster's directory.
func (c *Cluster) installSelf(from string) error {
	if err := os.MkdirAll(filepath.Dir(c.self()), 0o755); err != nil {
		return fmt.Errorf("making the program directory: %w", err)
	}
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copying the cluster command: %w", err)
	}
	defer source.Close()
	target, err := os.OpenFile(c.self(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("copying the cluster command: %w", err)
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return fmt.Errorf("copying the cluster command: %w", err)
	}
	if err := target.Close(); err != nil {
		return fmt.Errorf("copying the cluster command: %w", err)
	}
	return nil
}
