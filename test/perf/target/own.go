// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/regatta-sh/regatta/test/cluster/credentials"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/install"
	"github.com/regatta-sh/regatta/test/perf/procfs"
)

// manager is the program that is measured, and its process.
const manager = "kruise-manager"

// OwnOptions say what Own is to make.
type OwnOptions struct {
	Name         string
	Nodes        int
	SchedulerQPS int
	// Bin is a folder for our programs, which run from there.
	Bin string
	Out io.Writer
}

// Own brings up a cluster of simulated nodes with Regatta on it. One of that
// name that is there already is removed first: it may not be quiet. The caller
// takes it down, after an error too.
func Own(ctx context.Context, o OwnOptions) (*Target, error) {
	root, err := install.Root()
	if err != nil {
		return nil, err
	}
	programs, err := install.Build(ctx, root, o.Bin, o.Out)
	if err != nil {
		return nil, err
	}
	t := &Target{}
	t.Subject.Name, t.Subject.User, t.Subject.Version = "regatta", credentials.Manager, version(ctx, root)
	if err := local.Down(ctx, o.Name, io.Discard); err != nil {
		return nil, err
	}
	cluster, err := local.Up(ctx, local.Options{Name: o.Name, Simulated: o.Nodes, SchedulerQPS: o.SchedulerQPS, Out: o.Out})
	if err != nil {
		return nil, err
	}
	if _, err := install.Install(ctx, install.Options{Root: root, Programs: programs, Cluster: cluster, Out: o.Out}); err != nil {
		return nil, err
	}
	if err := t.know(cluster.State); err != nil {
		return nil, err
	}
	t.Subject.PIDs = t.Peers[manager]
	delete(t.Peers, manager)
	if t.Metrics, err = metricsOf(t.Subject.PIDs); err != nil {
		return nil, err
	}
	return t, t.connect(cluster.State.Kubeconfig())
}

// metricsOf finds the URL of the metrics of a manager on this machine.
func metricsOf(pids []int) (string, error) {
	if len(pids) != 1 {
		return "", fmt.Errorf("finding the manager: %d processes run it", len(pids))
	}
	arguments, err := procfs.Arguments(pids[0])
	if err != nil {
		return "", err
	}
	for _, a := range arguments {
		if address, ok := strings.CutPrefix(a, "--metrics-addr="); ok {
			return "http://" + address + "/metrics", nil
		}
	}
	return "", nil
}

// version is the commit that a source stands at.
func version(ctx context.Context, root string) string {
	git := func(args ...string) string {
		command := exec.CommandContext(ctx, "git", args...)
		command.Dir = root
		text, err := command.Output()
		if err != nil {
			return "" // it may be no repository
		}
		return strings.TrimSpace(string(text))
	}
	commit := git("rev-parse", "--short=12", "HEAD")
	if git("status", "--porcelain", "--", "controllers", "engine", "policies", "charts") != "" {
		commit += " with changes"
	}
	return commit
}
