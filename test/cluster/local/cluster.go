// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/regatta-sh/regatta/test/cluster/controlplane"
	"github.com/regatta-sh/regatta/test/cluster/nodes"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// A Cluster is a cluster that has been brought up.
type Cluster struct {
	State *state.State
}

// Open returns the named cluster as it was recorded, healthy or not.
func Open(name string) (*Cluster, error) {
	recorded, err := state.Load(name)
	if err != nil {
		return nil, err
	}
	return &Cluster{State: recorded}, nil
}

// Kubeconfig is the kubeconfig file of a user; see package credentials.
func (c *Cluster) Kubeconfig(user string) (string, error) {
	path, ok := c.State.Users[user]
	if !ok {
		return "", fmt.Errorf("the cluster %q has no user %q", c.State.Name, user)
	}
	return path, nil
}

// RESTConfig returns a client configuration for a user.
func (c *Cluster) RESTConfig(user string) (*rest.Config, error) {
	path, err := c.Kubeconfig(user)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", user, err)
	}
	return config, nil
}

// Client returns a client with the administrator's rights and no rate limit.
func (c *Cluster) Client() (kubernetes.Interface, error) { return controlplane.Client(c.State) }

// Check returns nil for a cluster whose programs all run and answer.
func (c *Cluster) Check(ctx context.Context) error {
	if !c.State.Complete {
		return errors.New("it never came up completely")
	}
	missing, err := c.missing()
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("not running: %s", strings.Join(missing, ", "))
	}
	return controlplane.Healthy(ctx, c.State)
}

// missing lists the processes that should run and do not.
func (c *Cluster) missing() ([]string, error) {
	running, err := process.Find(c.State.Dir)
	if err != nil {
		return nil, err
	}
	names := process.Names(running)
	expected := nodes.Names(c.State)
	for _, spec := range c.State.Processes {
		expected = append(expected, spec.Name)
	}
	var missing []string
	for _, name := range expected {
		if !names[name] && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing, nil
}
