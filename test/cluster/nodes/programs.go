// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/regatta-sh/regatta/test/cluster/process"
)

const programsFile = "programs.json"

// programs lists what runs on the node, in the order in which it is started. self is
// the path of this command, which is the CSI driver too.
func (n node) programs(self string, paths map[string]string) []process.Spec {
	spec := func(name, path string, args ...string) process.Spec {
		full := n.name + "/" + name
		return process.Spec{Name: full, Path: path, Args: args, Log: n.Log(strings.ReplaceAll(full, "/", "-"))}
	}
	specs := []process.Spec{
		spec(Containerd, "containerd", "--config="+n.path("containerd.toml")),
		spec(Kubelet, paths[Kubelet],
			"--config="+n.path("kubelet.yaml"),
			"--kubeconfig="+n.Users["system:node:"+n.name],
			"--hostname-override="+n.name,
			// A node without an address that others can use is of no use.
			"--node-ip="+n.Plan.Node(n.number).String(),
			"--node-labels="+n.labels(),
			"--root-dir="+kubeletDir,
			"--cert-dir="+kubeletDir+"/pki",
		),
		spec(KubeProxy, paths[KubeProxy],
			"--kubeconfig="+n.Users["system:kube-proxy"],
			"--hostname-override="+n.name,
			"--proxy-mode=nftables",
			"--cluster-cidr="+n.Plan.RealPods().String(),
			// These settings belong to the whole machine, not to the node.
			"--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-established=0s",
			"--conntrack-tcp-timeout-close-wait=0s",
		),
	}
	if n.Kubernetes == "1.30" { // the last minor version where the mode is behind a gate
		proxy := &specs[len(specs)-1]
		proxy.Args = append(proxy.Args, "--feature-gates=NFTablesProxyMode=true")
	}
	if n.CSI {
		specs = append(specs, spec(CSI, self, "csi", "--dir="+n.Dir, "--node="+n.name, "--kubelet="+kubeletDir))
	}
	return specs
}

func (n node) readPrograms() ([]process.Spec, error) {
	data, err := os.ReadFile(n.path(programsFile))
	if err != nil {
		return nil, fmt.Errorf("reading the programs of %s: %w", n.name, err)
	}
	var specs []process.Spec
	if err := json.Unmarshal(data, &specs); err != nil {
		return nil, fmt.Errorf("decoding the programs of %s: %w", n.name, err)
	}
	return specs, nil
}
