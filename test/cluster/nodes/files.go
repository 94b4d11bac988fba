// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"golang.org/x/sys/unix"

	"github.com/regatta-sh/regatta/test/cluster/simulated"
)

//go:embed containerd.toml.tmpl
var containerdTemplate string

//go:embed kubelet.yaml.tmpl
var kubeletTemplate string

// pauseImage runs in every pod; the registry has a stand-in for it.
const pauseImage = "registry.k8s.io/pause:regatta"

// writeFiles writes the configuration of the node's programs, and the list of
// them that the node's first process starts.
func (n node) writeFiles(self string, programs map[string]string) error {
	for _, dir := range []string{"cni", "lib", "log", "sysctl", "certs.d/_default"} {
		if err := os.MkdirAll(n.path(dir), 0o755); err != nil {
			return fmt.Errorf("making the directory of %s: %w", n.name, err)
		}
	}
	plugins, err := pluginDir()
	if err != nil {
		return err
	}
	network, err := n.cniConfig()
	if err != nil {
		return err
	}
	snapshotter, err := snapshotter(n.Dir)
	if err != nil {
		return err
	}
	values := map[string]string{
		"Address": n.Plan.Node(n.number).String(), "Cgroup": n.cgroup(), "Resolv": n.path("resolv.conf"), "NameServer": n.NameServer(),
		"Plugins": plugins, "Networks": n.path("cni"), "Mirrors": n.path("certs.d"),
		"Pause": pauseImage, "Snapshotter": snapshotter, "CSI": "",
	}
	if n.CSI {
		values["CSI"] = "true"
	}
	containerd, err := render(containerdTemplate, values)
	if err != nil {
		return err
	}
	kubelet, err := render(kubeletTemplate, values)
	if err != nil {
		return err
	}
	start, err := json.MarshalIndent(n.programs(self, programs), "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the programs of %s: %w", n.name, err)
	}
	files := map[string][]byte{
		"containerd.toml":             containerd,
		"kubelet.yaml":                kubelet,
		"cni/10-regatta.conflist":     network,
		"certs.d/_default/hosts.toml": n.mirror(),
		// What pods inherit with dnsPolicy Default: empty, to keep the host's out.
		"resolv.conf": nil,
		programsFile:  start,
	}
	for name, content := range files {
		if err := os.WriteFile(n.path(name), content, 0o644); err != nil {
			return fmt.Errorf("writing %s of %s: %w", filepath.Base(name), n.name, err)
		}
	}
	return nil
}

// mirror sends requests for the images of all registries to the cluster's own.
// It is also the last resort, which would otherwise be the real one.
func (n node) mirror() []byte {
	address := "http://" + n.RegistryAddress()
	return fmt.Appendf(nil, "server = %q\n\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", address, address)
}

func render(text string, values any) ([]byte, error) {
	parsed, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parsing a template: %w", err)
	}
	var buffer bytes.Buffer
	if err := parsed.Execute(&buffer, values); err != nil {
		return nil, fmt.Errorf("rendering a template: %w", err)
	}
	return buffer.Bytes(), nil
}

// cniConfig connects pods to a bridge inside the node. Addresses are not
// hidden: every machine has a route to every pod.
func (n node) cniConfig() ([]byte, error) {
	config := map[string]any{
		"cniVersion": "0.4.0",
		"name":       "regatta",
		"plugins": []any{map[string]any{
			"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false,
			// For a pod that reaches itself through a service.
			"hairpinMode": true,
			"ipam": map[string]any{
				"type":   "host-local",
				"ranges": [][]any{{map[string]string{"subnet": n.Plan.NodePods(n.number).String()}}},
				"routes": []any{map[string]string{"dst": "0.0.0.0/0"}},
			},
		}},
	}
	encoded, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the pod network: %w", err)
	}
	return encoded, nil
}

// snapshotter is how containerd stacks layers: overlayfs, unless the directory
// lies on an overlay itself, as in a container, where the kernel refuses.
func snapshotter(dir string) (string, error) {
	var info unix.Statfs_t
	if err := unix.Statfs(dir, &info); err != nil {
		return "", fmt.Errorf("asking for the file system of %s: %w", dir, err)
	}
	if info.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native", nil
	}
	return "overlayfs", nil
}

// labels are what the kubelet registers its node with.
func (n node) labels() string {
	return fmt.Sprintf("%s=%s,topology.kubernetes.io/region=local,topology.kubernetes.io/zone=%s",
		simulated.NodeLabel, simulated.KindReal, n.Zone(n.number))
}
