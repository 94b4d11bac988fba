package local

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/regatta-sh/regatta/test/cluster/controlplane"
	"github.com/regatta-sh/regatta/test/cluster/nodes"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// serving is the name of the process with the registry and the provisioner.
const serving = "serve"

// self is the cluster's own copy of the cluster command: `go run` and `go test`
// remove theirs.
func (c *Cluster) self() string { return c.State.Path("bin", "cluster") }

// installSelf copies or builds the cluster command into the cluster's directory.
func (c *Cluster) installSelf(ctx context.Context, from string) (string, error) {
	if err := os.MkdirAll(c.State.Path("bin"), 0o755); err != nil {
		return "", fmt.Errorf("making the program directory: %w", err)
	}
	to := c.self()
	if from == "" {
		build := exec.CommandContext(ctx, "go", "build", "-o", to, "github.com/regatta-sh/regatta/test/cluster")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building the cluster command: %w\n%s", err, bytes.TrimSpace(output))
		}
		return to, nil
	}
	source, err := os.Open(from)
	if err != nil {
		return "", fmt.Errorf("copying the cluster command: %w", err)
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return "", fmt.Errorf("copying the cluster command: %w", err)
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return "", fmt.Errorf("copying the cluster command: %w", err)
	}
	if err := target.Close(); err != nil {
		return "", fmt.Errorf("copying the cluster command: %w", err)
	}
	return to, nil
}

func (c *Cluster) registryHealthy(ctx context.Context) error {
	return controlplane.Get(ctx, "http://"+c.State.RegistryAddress()+"/v2/")
}

// readyForNodes checks and installs what real nodes need of the machine.
func readyForNodes(ctx context.Context, cache string, options Options) error {
	dir, err := state.Dir(options.Name)
	if err != nil {
		return err
	}
	if err := nodes.CheckPath("the directory of the cluster", dir); err != nil {
		return err
	}
	if err := nodes.CheckPath("the cache of programs", cache); err != nil {
		return err
	}
	return nodes.Install(ctx, options.Out)
}
