// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/manager"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/install"
)

// Trial is a cluster of simulated nodes with managers beside it, on which something is tried.
type Trial struct {
	Name     string // of the cluster, which is removed afterwards
	Nodes    int
	Programs map[string]string // of install.Build
	Replicas int               // of the manager
	// Arguments are those of the managers.
	Arguments []string
	Out       io.Writer
}

// Run brings up the cluster, has f try something there as an administrator, and takes it down.
func (t Trial) Run(ctx context.Context, f func(*rest.Config, client.WithWatch, []*Replica) error) (err error) {
	root, err := install.Root()
	if err != nil {
		return err
	}
	cluster, err := local.Up(ctx, local.Options{Name: t.Name, Simulated: t.Nodes, SchedulerQPS: 500, Out: t.Out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Down(context.WithoutCancel(ctx), t.Name, t.Out)) }()
	replicas, balancer, err := Install(ctx, install.Options{Root: root, Programs: t.Programs, Cluster: cluster, Out: t.Out}, t.Replicas, t.Arguments...)
	if err != nil {
		return err
	}
	defer balancer.Close()
	config, err := cluster.RESTConfig("admin")
	if err != nil {
		return err
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		return err
	}
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return f(config, c, replicas)
}
