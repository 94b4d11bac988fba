// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/controlplane"
	"github.com/regatta-sh/regatta/test/cluster/csi/sidecars"
	"github.com/regatta-sh/regatta/test/cluster/nodes"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/simulated"
	"github.com/regatta-sh/regatta/test/cluster/volumes"
)

// start runs everything that a prepared cluster is made of.
func (c *Cluster) start(ctx context.Context, programs map[string]string, options Options) error {
	if err := controlplane.WriteFiles(c.State, time.Now()); err != nil {
		return err
	}
	steps := []struct {
		what   string
		wanted bool
		work   func() error
	}{
		// The API server listens on the bridge, so the network comes first.
		{"network", c.State.Real > 0, func() error { return c.createNetwork(ctx) }},
		{"control plane", true, func() error { return c.startControlPlane(ctx, programs, options) }},
		{"registry and volumes", true, func() error { return c.startServing(ctx) }},
		{"placement of system pods", c.State.Real > 0 && c.State.Simulated > 0, func() error { return c.keepSystemReal(ctx) }},
		{"simulated nodes", c.State.Simulated > 0, func() error { return c.startSimulated(ctx, programs, options) }},
		{"CSI driver", c.State.CSI, func() error { return c.startCSI(ctx, programs) }},
		{"real nodes", c.State.Real > 0, func() error { return c.startNodes(programs) }},
		{"nodes ready for pods", true, func() error { return c.waitUsable(ctx) }},
		{"CSI driver on the nodes", c.State.CSI, func() error { return c.waitCSI(ctx) }},
		{"kubeconfig", options.Kubeconfig != "", func() error { return c.merge(options.Kubeconfig) }},
	}
	for _, one := range steps {
		if !one.wanted {
			continue
		}
		if err := step(options.Out, one.what, one.work); err != nil {
			return err
		}
	}
	c.State.Complete = true
	return c.State.Save()
}

func (c *Cluster) startControlPlane(ctx context.Context, programs map[string]string, options Options) error {
	if err := c.installSelf(options.Self); err != nil {
		return err
	}
	tuning := controlplane.Options{StockQPS: options.StockQPS, SchedulerQPS: options.SchedulerQPS, FeatureGates: options.FeatureGates, Self: c.self()}
	for _, spec := range controlplane.Processes(c.State, programs, tuning) {
		if err := c.run(spec); err != nil {
			return err
		}
		var err error
		switch spec.Name {
		case controlplane.Etcd:
			err = controlplane.WaitForEtcd(ctx, c.State)
		case controlplane.APIServer:
			err = controlplane.WaitForAPIServer(ctx, c.State)
		case controlplane.Delay:
			err = controlplane.Endpoints(ctx, c.State)
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, tail(spec.Log))
		}
	}
	return nil
}

func (c *Cluster) startSimulated(ctx context.Context, programs map[string]string, options Options) error {
	spec, err := simulated.Process(c.State, programs)
	if err != nil {
		return err
	}
	if err := c.run(spec); err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	if err := simulated.LimitRemoval(ctx, client); err != nil {
		return err
	}
	if err := simulated.CreateNodes(ctx, client, c.State, options.TaintSimulated); err != nil {
		return err
	}
	err = controlplane.Wait(ctx, 30*time.Second, "KWOK", func(ctx context.Context) error {
		return simulated.Managed(ctx, client, c.State)
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, tail(spec.Log))
	}
	return nil
}

// startServing starts the registry and the provisioner of volumes.
func (c *Cluster) startServing(ctx context.Context) error {
	spec := process.Spec{Name: serving, Path: c.self(), Args: []string{"serve", "--dir=" + c.State.Dir}, Log: c.State.Log(serving)}
	if err := c.run(spec); err != nil {
		return err
	}
	err := controlplane.Wait(ctx, 20*time.Second, "the registry", func(ctx context.Context) error {
		return controlplane.Get(ctx, "http://"+c.State.RegistryAddress()+"/v2/")
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, tail(spec.Log))
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	return volumes.CreateClass(ctx, client)
}

// startCSI starts the CSI driver's controller service and the programs that call it.
func (c *Cluster) startCSI(ctx context.Context, programs map[string]string) error {
	for _, spec := range sidecars.Processes(c.State, c.self(), programs) {
		if err := c.run(spec); err != nil {
			return err
		}
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	return sidecars.CreateObjects(ctx, client)
}

// waitCSI returns when every real node mounts volumes of the CSI driver.
func (c *Cluster) waitCSI(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return controlplane.Wait(ctx, 30*time.Second, "the CSI driver", func(ctx context.Context) error {
		return sidecars.Registered(ctx, client, c.State)
	})
}

func (c *Cluster) createNetwork(ctx context.Context) error {
	unlock, err := lockNetwork(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return nodes.CreateNetwork(ctx, c.State)
}

func (c *Cluster) startNodes(programs map[string]string) error {
	for number := 1; number <= c.State.Real; number++ {
		spec, err := nodes.Process(c.State, number, c.self(), programs)
		if err != nil {
			return err
		}
		if err := c.run(spec); err != nil {
			return err
		}
	}
	return nil
}

// run records a process and starts it.
func (c *Cluster) run(spec process.Spec) error {
	c.State.Processes = append(c.State.Processes, spec)
	if err := c.State.Save(); err != nil {
		return err
	}
	_, err := process.Start(c.State.Dir, spec)
	return err
}

// tail returns the end of a log, for an error that it explains.
func tail(path string) string {
	const enough = 2000
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > enough {
		if _, err := file.Seek(-enough, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return ""
	}
	return "the end of " + path + ":\n" + strings.TrimSpace(string(data))
}
