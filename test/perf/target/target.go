// SPDX-License-Identifier: Apache-2.0

// Package target is the cluster and the process that are measured: a local
// cluster with Regatta that is brought up for it, or any other.
package target

import (
	"fmt"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// A Target is what is measured. What is empty is not known, and left out of the
// report.
type Target struct {
	Config   *rest.Config
	Cluster  report.Cluster
	Subject  report.Subject
	AuditLog string
	Metrics  []string // URLs of the managers'
	// Peers are the other processes of a local cluster by name.
	Peers map[string][]int
}

// controllerManager runs native workloads.
const controllerManager = "kube-controller-manager"

// Users are those whose writes make a workload of this kind.
func (t *Target) Users(kind workload.Kind) []string {
	if !kind.Native() {
		return []string{t.Subject.User}
	}
	users := []string{"system:kube-controller-manager"} // of clusters whose controllers share one user
	for _, name := range kind.Controllers {
		users = append(users, "system:serviceaccount:kube-system:"+name)
	}
	return users
}

// PIDs are the processes that make a workload of this kind.
func (t *Target) PIDs(kind workload.Kind) []int {
	if !kind.Native() {
		return t.Subject.PIDs
	}
	return t.Peers[controllerManager]
}

// connect reads a kubeconfig. The tool itself is not to be what is waited for.
func (t *Target) connect(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	t.Config = config
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the cluster for its version: %w", err)
	}
	t.Cluster.Kubernetes = version.GitVersion
	return nil
}

// know fills in what the state of a local cluster has.
func (t *Target) know(s *state.State) error {
	t.AuditLog = s.AuditLog()
	t.Cluster.Name = s.Name
	t.Cluster.SchedulerQPS = "50"
	for _, spec := range s.Processes {
		for _, argument := range spec.Args {
			if qps, ok := strings.CutPrefix(argument, "--kube-api-qps="); ok && spec.Name == "kube-scheduler" {
				t.Cluster.SchedulerQPS = qps
			}
		}
	}
	running, err := process.Find(s.Dir)
	if err != nil {
		return err
	}
	t.Peers = map[string][]int{}
	for _, one := range running {
		if one.Executable == one.Name { // not the shells and helpers that have inherited it
			t.Peers[one.Name] = append(t.Peers[one.Name], one.PID)
		}
	}
	return nil
}
