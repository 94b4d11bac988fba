// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/regatta-sh/regatta/test/cluster/credentials"
)

// merge adds the cluster to the kubeconfig at path, if there is one. It is
// recorded first, so that Down takes the cluster out again.
func (c *Cluster) merge(path string) error {
	if path == "" {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("finding the kubeconfig: %w", err)
	}
	if c.State.Merged != "" && c.State.Merged != path {
		return fmt.Errorf("the cluster was added to the kubeconfig %s already; copy %s instead", c.State.Merged, c.State.Kubeconfig())
	}
	c.State.Merged = path
	if err := c.State.Save(); err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(c.State.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the cluster: %w", err)
	}
	return credentials.Merge(path, config)
}
