// SPDX-License-Identifier: Apache-2.0

// Package local brings up, looks after and takes down a Kubernetes cluster on
// this machine. It is what the command is made of, and what tests import.
package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// Defaults of Options.
const (
	DefaultName      = "regatta"
	DefaultSimulated = 3
	DefaultZones     = 3
)

// Options say what Up is to make.
type Options struct {
	Name string
	// Real and Simulated are numbers of nodes. With neither, Up makes
	// DefaultSimulated simulated nodes, or reuses whatever runs.
	Real, Simulated int
	// Zones is the number of zones that the nodes are spread over.
	Zones int
	// TaintSimulated keeps pods without a toleration off simulated nodes.
	TaintSimulated bool
	// StockQPS, SchedulerQPS and FeatureGates are as in controlplane.Options.
	StockQPS     bool
	SchedulerQPS int
	FeatureGates []string
	// Delay is added to each request of pods and of the controller manager to the
	// API server, as a distant one would.
	Delay time.Duration
	// Kubernetes is the minor version of the control plane and the nodes, such as 1.34; empty for the newest.
	Kubernetes string
	// CSI runs a CSI driver beside the other volumes; see package csi. It needs real
	// nodes.
	CSI bool
	// Self is the path of the cluster command, of which every cluster keeps a
	// copy for its own processes. It is built where it is empty.
	Self string
	// Kubeconfig, where set, is a file to add the cluster to.
	Kubeconfig string
	// Keep leaves a cluster that failed to come up as it is, to look at.
	Keep bool
	// Out receives progress messages. There are none if it is nil.
	Out io.Writer
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Zones == 0 {
		o.Zones = DefaultZones
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	return o
}

func (o Options) validate() error {
	if err := state.CheckName(o.Name); err != nil {
		return err
	}
	if err := binaries.CheckKubernetes(o.Kubernetes); err != nil {
		return err
	}
	switch {
	case o.Real < 0 || o.Simulated < 0:
		return errors.New("the number of nodes cannot be negative")
	case o.Real > addresses.MaxRealNodes:
		return fmt.Errorf("%d real nodes are more than the %d that there are addresses for", o.Real, addresses.MaxRealNodes)
	case o.Simulated > addresses.MaxSimulatedNodes:
		return fmt.Errorf("%d simulated nodes are more than the %d that there are addresses for", o.Simulated, addresses.MaxSimulatedNodes)
	case o.Zones < 1 || o.Zones > 26:
		return fmt.Errorf("the number of zones is %d, and must be between 1 and 26", o.Zones)
	case o.Delay < 0:
		return errors.New("the delay of requests cannot be negative")
	case o.Delay > 0 && o.Real == 0:
		return errors.New("a delay of requests is for pods, and needs real nodes, which run them")
	case o.CSI && o.Real == 0:
		return errors.New("a CSI driver mounts volumes for kubelets, and needs real nodes, which have them")
	case o.SchedulerQPS < 0:
		return errors.New("the scheduler's request rate cannot be negative")
	case o.Real > 0 && os.Geteuid() != 0:
		return errors.New("real nodes need root: they are network namespaces with a kubelet each; simulated nodes do not")
	}
	return nil
}

// unspecified says that the caller takes any number of nodes.
func (o Options) unspecified() bool { return o.Real == 0 && o.Simulated == 0 }
