// SPDX-License-Identifier: Apache-2.0

// Package nodes makes real nodes: each a machine of its own, as far as
// Kubernetes can tell, with a network namespace, containerd, a kubelet and a
// kube-proxy.
//
// A node is also one process, the first of a process namespace. Whatever ends
// it ends the node with every container on it, as pulling the plug would; and
// its mounts, which only its mount namespace has, go with it.
package nodes

import (
	"fmt"

	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// Names of the programs of a node. The process is called NODE/PROGRAM.
const (
	Containerd = "containerd"
	Kubelet    = "kubelet"
	KubeProxy  = "kube-proxy"
	CSI        = "csi"
)

// kubeletDir is the kubelet's directory, as the programs of a node see it.
const kubeletDir = "/var/lib/kubelet"

// A node is what the files and commands of one real node are made from.
type node struct {
	*state.State
	number int
	name   string
}

func newNode(s *state.State, number int) node {
	return node{State: s, number: number, name: state.RealNode(number)}
}

// path is a path in the node's own directory.
func (n node) path(elements ...string) string {
	return n.Path(append([]string{"nodes", n.name}, elements...)...)
}

// network is the name of the network namespace: recognizable to a user who lists
// them, and not that of another cluster's node.
func (n node) network() string { return networkPrefix(n.ID()) + n.name }

func networkPrefix(id string) string { return "regatta-" + id + "-" }

// cgroup is the path of the cgroup in every hierarchy.
func (n node) cgroup() string { return "/" + networkPrefix(n.ID()) + n.name }

// Names lists the processes of a cluster's real nodes.
func Names(s *state.State) []string {
	var names []string
	for number := 1; number <= s.Real; number++ {
		name := state.RealNode(number)
		names = append(names, name, name+"/"+Containerd, name+"/"+Kubelet, name+"/"+KubeProxy)
		if s.CSI {
			names = append(names, name+"/"+CSI)
		}
	}
	return names
}

// Process prepares real node number and returns how to run it. self is the
// path of this command, which becomes the node's first process.
func Process(s *state.State, number int, self string, programs map[string]string) (process.Spec, error) {
	n := newNode(s, number)
	if err := n.writeFiles(self, programs); err != nil {
		return process.Spec{}, err
	}
	return process.Spec{
		Name: n.name, Path: self, Log: s.Log(n.name), Machine: n.network(),
		Args: []string{"machine", "--dir=" + s.Dir, fmt.Sprintf("--number=%d", number)},
	}, nil
}
