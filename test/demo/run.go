// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/install"
)

type options struct {
	name            string
	real, simulated int
	kubernetes      string
	kubeconfig      string
	image           string
	installed       bool
	endpoint        string
}

// validate refuses flags that would be ignored.
func (o options) validate() error {
	for _, f := range []struct {
		flag        string
		set, needed bool
		needs       string
	}{
		{"--image", o.image != "", o.kubeconfig != "" && !o.installed, "--kubeconfig without --installed"},
		{"--installed", o.installed, o.kubeconfig != "", "--kubeconfig"},
		{"--endpoint", o.endpoint != "", o.installed, "--installed"},
		{"--real", o.real != 0, o.kubeconfig == "" && o.real > 0, "a positive number, and no --kubeconfig"},
		{"--simulated", o.simulated != 0, o.kubeconfig == "" && o.simulated > 0, "a positive number, and no --kubeconfig"},
		{"--kubernetes", o.kubernetes != "", o.kubeconfig == "", "no --kubeconfig"},
		{"--kubeconfig", o.kubeconfig != "", o.installed || o.image != "", "--image or --installed"},
	} {
		if f.set && !f.needed {
			return fmt.Errorf("%s needs %s", f.flag, f.needs)
		}
	}
	return nil
}

// run brings everything up and plays the show. It leaves the cluster as it is
// at the end, for the user to go on with.
func run(ctx context.Context, o options) error {
	started := time.Now()
	root, err := install.Root()
	if err != nil {
		return err
	}
	title("Building Regatta")
	programs, err := install.Build(ctx, root, filepath.Join(root, "bin"), os.Stdout)
	if err != nil {
		return err
	}
	in := install.Options{Root: root, Programs: programs, Kubeconfig: o.kubeconfig, Image: o.image, Out: os.Stdout}
	if o.kubeconfig == "" {
		if in.Cluster, err = bringUp(ctx, o); err != nil {
			return err
		}
	} else if in.Tools, err = toolsOnPath(); err != nil {
		return err
	}
	installed := install.Installed{Kubeconfig: o.kubeconfig, Tools: in.Tools, Endpoint: o.endpoint}
	if !o.installed {
		title("Installing the chart: helm install kruise charts/kruise")
		if installed, err = install.Install(ctx, in); err != nil {
			return err
		}
	}
	s := &show{ctx: ctx, root: root, env: installed.Env(programs), endpoint: installed.Endpoint}
	if err := s.play(); err != nil {
		return err
	}
	s.finish(o, installed, time.Since(started))
	return nil
}

func bringUp(ctx context.Context, o options) (*local.Cluster, error) {
	if o.real == 0 && o.simulated == 0 {
		if os.Geteuid() == 0 {
			o.real = 3
		} else {
			o.simulated = 6
		}
	}
	title(fmt.Sprintf("Starting Kubernetes %s (%d real and %d simulated nodes)", cmp.Or(o.kubernetes, binaries.KubernetesVersion), o.real, o.simulated))
	return local.Up(ctx, local.Options{Name: o.name, Real: o.real, Simulated: o.simulated, Kubernetes: o.kubernetes, Out: os.Stdout})
}
