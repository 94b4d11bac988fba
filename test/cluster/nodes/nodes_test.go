// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

func testState(t *testing.T) *state.State {
	t.Helper()
	s := &state.State{
		Name: "h1", Dir: t.TempDir(), Real: 12, Zones: 3, Plan: addresses.Plan{Octet: 88},
		Users: map[string]string{"system:node:node-2": "/users/node-2", "system:kube-proxy": "/users/proxy"},
	}
	s.Ports.Registry = 20005
	return s
}

func TestCheckPath(t *testing.T) {
	tests := map[string]bool{
		"/root/.local/state/regatta": true, "/home/me/.cache": true, "/variable/lib": true, "/var/library": true,
		"/var/lib": false, "/var/lib/jenkins/.cache": false, "/run/user/0": false, "/var/log/x": false,
	}
	for path, want := range tests {
		if err := CheckPath("the cache", path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestCheckDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	if err := checkDisk(dir, 1); err != nil {
		t.Errorf("a disk with room: %v", err)
	}
	err := checkDisk(dir, 1<<62)
	if err == nil || !strings.Contains(err.Error(), "real nodes need") || !strings.Contains(err.Error(), dir) {
		t.Errorf("a disk without room: %v", err)
	}
}

func TestNodesDoNotShareNames(t *testing.T) {
	s := testState(t)
	one, twelve := newNode(s, 1), newNode(s, 12)
	if one.network() == twelve.network() || one.cgroup() == twelve.cgroup() || one.path() == twelve.path() {
		t.Error("two nodes share something")
	}
	if !strings.HasPrefix(one.network(), networkPrefix(s.ID())) || !strings.HasPrefix(one.cgroup(), "/"+networkPrefix(s.ID())) {
		t.Errorf("%s and %s cannot be found by the cluster's ID", one.network(), one.cgroup())
	}
	if len(Names(s)) != 4*12 {
		t.Errorf("the cluster's processes are %v", Names(s))
	}
}

func TestCommandsInsideANode(t *testing.T) {
	s := testState(t)
	s.Real = 3
	got := strings.Join(newNode(s, 2).inside(), "\n")
	for _, want := range []string{
		"addr add 10.88.0.12/24 dev eth0",
		"route add 10.88.32.0/19 dev services src 10.88.0.12",
		"route add 10.88.129.0/24 via 10.88.0.11 dev eth0",
		"route add 10.88.131.0/24 via 10.88.0.13 dev eth0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from\n%s", want, got)
		}
	}
	for _, unwanted := range []string{"10.88.130.0/24", "default"} {
		if strings.Contains(got, unwanted) {
			t.Errorf("%q is in\n%s", unwanted, got)
		}
	}
}

func TestFilesOfANode(t *testing.T) {
	n := newNode(testState(t), 2)
	values := map[string]string{
		"Address": "10.88.0.12", "Cgroup": n.cgroup(), "Resolv": "/resolv", "NameServer": "10.88.0.1",
		"Plugins": "/usr/lib/cni", "Networks": "/cni", "Mirrors": "/certs.d", "Pause": pauseImage, "Snapshotter": "overlayfs", "CSI": "true",
	}
	kubelet, err := render(kubeletTemplate, values)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.UnmarshalStrict(kubelet, &config); err != nil {
		t.Fatal(err)
	}
	if config["cgroupRoot"] != n.cgroup() || config["failCgroupV1"] != false || config["syncFrequency"] != "10s" {
		t.Errorf("got %v", config)
	}
	containerd, err := render(containerdTemplate, values)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(containerd), `config_path = "/certs.d"`) {
		t.Errorf("got %s", containerd)
	}
	if _, err := render(containerdTemplate, map[string]string{}); err == nil {
		t.Error("a missing value is not noticed")
	}
	network, err := n.cniConfig()
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(network) || !strings.Contains(string(network), "10.88.130.0/24") {
		t.Errorf("got %s", network)
	}
	if got := string(n.mirror()); !strings.Contains(got, `server = "http://10.88.0.1:20005"`) {
		t.Errorf("got %s", got)
	}
	if got := n.labels(); !strings.Contains(got, "topology.kubernetes.io/zone=zone-b") {
		t.Errorf("got %s", got)
	}
}

func TestProgramsAreReadAsWritten(t *testing.T) {
	n := newNode(testState(t), 2)
	if err := os.MkdirAll(n.path(), 0o755); err != nil {
		t.Fatal(err)
	}
	written := n.programs("/bin/cluster", map[string]string{Kubelet: "/bin/kubelet", KubeProxy: "/bin/kube-proxy"})
	data, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.path(programsFile), data, 0o644); err != nil {
		t.Fatal(err)
	}
	read, err := n.readPrograms()
	if err != nil {
		t.Fatal(err)
	}
	if len(read) != 3 || read[1].Name != "node-2/kubelet" || read[1].Path != "/bin/kubelet" {
		t.Errorf("got %+v", read)
	}
	if filepath.Dir(read[1].Log) != n.Path("logs") {
		t.Errorf("the kubelet logs to %s", read[1].Log)
	}
}

func TestTheCSIDriverIsAProgramOfTheNode(t *testing.T) {
	s := testState(t)
	s.CSI = true
	all := newNode(s, 2).programs("/bin/cluster", map[string]string{})
	last := all[len(all)-1]
	if len(all) != 4 || last.Name != "node-2/csi" || last.Path != "/bin/cluster" || last.Args[0] != "csi" || last.Args[2] != "--node=node-2" {
		t.Errorf("got %+v", all)
	}
	if len(Names(s)) != 5*12 {
		t.Errorf("the cluster's processes are %v", Names(s))
	}
}
