// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/kubeversion"
)

// mostSkew is how many minor versions older than the API server a kubelet may be.
const mostSkew = 3

// nodeGroups has the names of nodes by the problem that they have.
type nodeGroups map[string][]string

func (g nodeGroups) addNode(what, node string) { g[what] = append(g[what], node) }

// checkNodes checks what the node agent and the manager require of nodes. It calls each for each node too, unless each is
// nil.
func (i *inspector) checkNodes(ctx context.Context, each func(*corev1.Node)) bool {
	server := 0
	if i.server != nil {
		server, _ = kubeversion.ParseMinor(i.server) // if zero, versions are not compared
	}
	architectures, runtimes, versions := nodeGroups{}, nodeGroups{}, nodeGroups{}
	all, fit := 0, 0
	nodes := &corev1.NodeList{}
	ok := i.listPages(ctx, "nodes", "Nodes", nodes, func() {
		for n := range nodes.Items {
			node := &nodes.Items[n]
			if each != nil {
				each(node)
			}
			info := node.Status.NodeInfo
			all++
			if info.OperatingSystem == "windows" || node.Labels[corev1.LabelOSStable] == "windows" {
				continue
			}
			if a := info.Architecture; a != "" && a != "amd64" && a != "arm64" {
				architectures.addNode(a, node.Name)
			} else {
				fit++
			}
			if name, _, found := strings.Cut(info.ContainerRuntimeVersion, "://"); found && name != "containerd" && name != "cri-o" {
				runtimes.addNode(name, node.Name)
			}
			if what := compareKubelet(info.KubeletVersion, server); what != "" {
				versions.addNode(what, node.Name)
			}
		}
	})
	if !ok {
		return false
	}
	i.addNodes(architectures, "status.nodeInfo.architecture", "the image is for amd64 and arm64, and not for %s", "keep the manager and the agent off them: --set-json manager.nodeSelector and daemon.nodeSelector with kubernetes.io/arch")
	i.addNodes(runtimes, "status.nodeInfo.containerRuntimeVersion", "the node agent knows containerd and CRI-O, and %s only by its CRI socket", "--set daemon.socketFile=NAME of the socket of its CRI, such as cri-dockerd.sock")
	i.addNodes(versions, "status.nodeInfo.kubeletVersion", "%s", "upgrade the nodes")
	switch {
	case all == 0:
		i.addFinding(Finding{Warns, "nodes", "Nodes", "items", "the cluster has no nodes, so that no manager starts", "add nodes"})
	case fit == 0:
		i.addFinding(Finding{Blocks, "nodes", "Nodes", "status.nodeInfo", fmt.Sprintf("none of %d nodes runs Linux on amd64 or arm64", all), "add such nodes"})
	default:
		i.addFinding(Finding{Fine, "nodes", "Nodes", "status.nodeInfo", fmt.Sprintf("%d of %d run Linux on amd64 or arm64", fit, all), ""})
	}
	return true
}

func (i *inspector) addNodes(groups nodeGroups, field, message, fix string) {
	for _, what := range slices.Sorted(maps.Keys(groups)) {
		i.addFinding(Finding{Warns, "nodes", "Nodes " + nameSome(groups[what]), field, fmt.Sprintf(message, what), fix})
	}
}

// compareKubelet says how the version of a kubelet does not fit that of the API server.
func compareKubelet(version string, server int) string {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 || server == 0 {
		return ""
	}
	minor, err := strconv.Atoi(parts[1])
	switch {
	case err != nil:
		return ""
	case minor > server:
		return fmt.Sprintf("their kubelet is 1.%d, newer than the API server, which Kubernetes does not support", minor)
	case minor < server-mostSkew:
		return fmt.Sprintf("their kubelet is 1.%d, and Kubernetes supports 1.%d or newer with this API server", minor, server-mostSkew)
	}
	return ""
}
