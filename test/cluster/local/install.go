// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"

	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/cluster/csi/sidecars"
	"github.com/regatta-sh/regatta/test/cluster/nodes"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// needed lists the programs of a cluster, and kubectl for its user.
func needed(options Options) []string {
	names := append(binaries.OfKubernetes(options.Kubernetes, "kube-apiserver", "kube-controller-manager", "kube-scheduler"), "etcd", "kubectl")
	if options.Simulated > 0 {
		names = append(names, "kwok")
	}
	if options.Real > 0 {
		names = append(names, binaries.OfKubernetes(options.Kubernetes, "kubelet", "kube-proxy")...)
	}
	if options.CSI {
		names = append(names, sidecars.Programs()...)
	}
	return names
}

// install builds or finds all programs that the cluster needs, and links them
// into a directory for PATH.
func install(ctx context.Context, cache string, options Options) (programs map[string]string, directory string, err error) {
	programs, err = binaries.Ensure(ctx, cache, options.Out, needed(options)...)
	if err != nil {
		return nil, "", err
	}
	if options.Real > 0 {
		if err := readyForNodes(ctx, cache, options); err != nil {
			return nil, "", err
		}
	}
	directory, err = binaries.Link(cache, programs)
	return programs, directory, err
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
	if err := nodes.CheckDisk(dir); err != nil {
		return err
	}
	return nodes.Install(ctx, options.Out)
}
