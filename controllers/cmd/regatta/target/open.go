// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/managers"
)

// Access has the clients that a command reads a cluster with.
type Access struct {
	Core    kubernetes.Interface
	Objects dynamic.Interface
	// Metadata reads the metadata of objects only.
	Metadata metadata.Interface
	// Asker asks the managers.
	Asker *managers.Asker
}

// OpenClients makes the clients of a cluster, and a way to ask its managers.
func (c *Cluster) OpenClients(asked managers.Flags) (*Access, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	a := &Access{}
	if a.Asker, err = managers.New(config, asked); err != nil {
		return nil, err
	}
	if c.watching {
		config = rest.CopyConfig(config)
		config.Timeout = 0
	}
	if a.Core, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if a.Metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if a.Objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return a, nil
}
