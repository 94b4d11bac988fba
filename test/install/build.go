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
)

// Programs are our own programs by the name of their file.
func programs() map[string]string {
	return map[string]string{
		"kruise-manager": "./controllers/cmd/manager",
		"regatta":        "./engine/cmd/regatta",
	}
}

// Build compiles our programs into dir, statically, so that an image needs
// nothing else, and returns their paths by name. The flags are those of the
// Makefile: any other would compile all dependencies once more.
func Build(ctx context.Context, root, dir string, out io.Writer) (map[string]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making %s: %w", dir, err)
	}
	paths := map[string]string{}
	for _, name := range []string{"kruise-manager", "regatta"} {
		started := time.Now()
		paths[name] = filepath.Join(dir, name)
		command := exec.CommandContext(ctx, "go", "build", "-o", paths[name], programs()[name])
		command.Dir = root
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s: %w\n%s", name, err, text)
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
