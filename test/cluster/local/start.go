package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/controlplane"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/simulated"
)

// start runs everything that a prepared cluster is made of.
func (c *Cluster) start(ctx context.Context, programs map[string]string, options Options) error {
	out := options.Out
	if err := controlplane.WriteFiles(c.State, time.Now()); err != nil {
		return err
	}
	if err := step(out, "control plane", func() error { return c.startControlPlane(ctx, programs, options) }); err != nil {
		return err
	}
	if c.State.Simulated > 0 {
		label := fmt.Sprintf("%d simulated nodes", c.State.Simulated)
		if err := step(out, label, func() error { return c.startSimulated(ctx, programs, options) }); err != nil {
			return err
		}
	}
	if err := step(out, "nodes ready for pods", func() error { return c.waitUsable(ctx) }); err != nil {
		return err
	}
	if err := c.merge(options.Kubeconfig); err != nil {
		return err
	}
	c.State.Complete = true
	return c.State.Save()
}

func (c *Cluster) startControlPlane(ctx context.Context, programs map[string]string, options Options) error {
	tuning := controlplane.Options{StockQPS: options.StockQPS, SchedulerQPS: options.SchedulerQPS}
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
