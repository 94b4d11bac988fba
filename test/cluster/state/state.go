// SPDX-License-Identifier: Apache-2.0

// Package state is what is known about a cluster: recorded in its directory
// before anything is made, so that it can be taken down whatever happens.
package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/process"
)

// Ports are the ports of a cluster's programs.
type Ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"apiServer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
	Registry          int `json:"registry"`
	// Delayed leads to the API server by a longer way.
	Delayed int `json:"delayed"`
}

// fields lists the ports in a fixed order.
func (p *Ports) fields() []*int {
	return []*int{&p.Etcd, &p.EtcdPeer, &p.APIServer, &p.ControllerManager, &p.Scheduler, &p.Registry, &p.Delayed}
}

// All returns the ports.
func (p *Ports) All() []int {
	var ports []int
	for _, field := range p.fields() {
		ports = append(ports, *field)
	}
	return ports
}

// Set assigns as many ports as All returns.
func (p *Ports) Set(ports []int) {
	for i, field := range p.fields() {
		*field = ports[i]
	}
}

// A State describes one cluster.
type State struct {
	Name      string    `json:"name"`
	Dir       string    `json:"dir"`
	Created   time.Time `json:"created"`
	Real      int       `json:"real"`
	Simulated int       `json:"simulated"`
	Zones     int       `json:"zones"`
	// Kubernetes is the minor version that was asked for; empty for the newest.
	Kubernetes string `json:"kubernetes,omitempty"`
	// CSI is true where a CSI driver serves volumes on the real nodes.
	CSI bool `json:"csi,omitempty"`
	// Delay is what each request of pods and of the controller manager takes
	// longer.
	Delay time.Duration  `json:"delay,omitempty"`
	Ports Ports          `json:"ports"`
	Plan  addresses.Plan `json:"addresses"`
	// Programs is the directory for PATH with kubectl, helm and the others.
	Programs string `json:"programs"`
	// Users maps a user to its kubeconfig file.
	Users     map[string]string `json:"users"`
	Processes []process.Spec    `json:"processes"`
	// Merged is a kubeconfig of the caller's to which the cluster was added.
	Merged string `json:"merged,omitempty"`
	// Complete is set when everything has come up once.
	Complete bool `json:"complete"`
}

// ID is short enough for the name of a network interface, and differs between
// clusters and between users of the machine.
func (s *State) ID() string { return Identifier(s.Dir) }

// Identifier is the ID of the cluster in dir, for when its state is lost.
func Identifier(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:3])
}

// Path is a path inside the cluster's directory.
func (s *State) Path(elements ...string) string {
	return filepath.Join(append([]string{s.Dir}, elements...)...)
}

// Log is the log file of a process.
func (s *State) Log(name string) string { return s.Path("logs", filepath.Base(name)+".log") }

// AuditLog is the API server's audit log.
func (s *State) AuditLog() string { return s.Path("logs", "audit.jsonl") }

// Kubeconfig is the administrator's kubeconfig.
func (s *State) Kubeconfig() string { return s.Path("kubeconfig") }

// APIServerHost is the address the API server listens on. Real nodes reach it
// over the bridge; without them it stays on loopback.
func (s *State) APIServerHost() string {
	if s.Real > 0 {
		return s.Plan.Host().String()
	}
	return "127.0.0.1"
}

// DelayedAddress is where the API server answers after Delay.
func (s *State) DelayedAddress() string {
	return fmt.Sprintf("%s:%d", s.APIServerHost(), s.Ports.Delayed)
}

// RegistryAddress is where the cluster's registry answers.
func (s *State) RegistryAddress() string {
	return fmt.Sprintf("%s:%d", s.APIServerHost(), s.Ports.Registry)
}

// NameServer is the address that pods on real nodes ask for names.
func (s *State) NameServer() string { return s.Plan.Host().String() }

// RealNode is the name of real node n, counted from 1.
func RealNode(n int) string { return fmt.Sprintf("node-%d", n) }

// SimulatedNode is the name of simulated node n, counted from 1.
func SimulatedNode(n int) string { return fmt.Sprintf("sim-%d", n) }

// Zone is the zone of the n-th node of its kind: the zones take turns.
func (s *State) Zone(n int) string { return fmt.Sprintf("zone-%c", 'a'+(n-1)%s.Zones) }

// Save records the state. It replaces the file at once, because a reader may
// come, or a crash, at any time.
func (s *State) Save() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the cluster state: %w", err)
	}
	path := s.Path(fileName)
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the cluster state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("replacing the cluster state: %w", err)
	}
	return nil
}
