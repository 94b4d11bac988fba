// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/simulated"
)

// A Status describes a cluster to users and scripts.
type Status struct {
	Name       string            `json:"name"`
	Healthy    bool              `json:"healthy"`
	Problem    string            `json:"problem,omitempty"`
	Kubeconfig string            `json:"kubeconfig"`
	Users      map[string]string `json:"users"`
	AuditLog   string            `json:"auditLog"`
	Logs       string            `json:"logs"`
	Registry   string            `json:"registry"`
	Programs   string            `json:"programs"`
	Network    string            `json:"network"`
	Nodes      []NodeStatus      `json:"nodes"`
	Processes  map[string][]int  `json:"processes"`
}

// A NodeStatus is what the API server knows about a node.
type NodeStatus struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Zone    string `json:"zone"`
	Address string `json:"address"`
	Ready   bool   `json:"ready"`
}

// Status asks the cluster how it is. It always returns what is recorded.
// Problem says what could not be found out.
func (c *Cluster) Status(ctx context.Context) Status {
	s := c.State
	status := Status{
		Name: s.Name, Kubeconfig: s.Kubeconfig(), Users: s.Users, AuditLog: s.AuditLog(), Logs: s.Path("logs"),
		Registry: s.RegistryAddress(), Programs: s.Programs, Network: s.Plan.All().String(), Processes: map[string][]int{},
	}
	if running, err := process.Find(s.Dir); err == nil {
		for _, one := range running {
			status.Processes[one.Name] = append(status.Processes[one.Name], one.PID)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := c.Check(ctx); err != nil {
		status.Problem = err.Error()
		return status
	}
	client, err := c.Client()
	if err != nil {
		status.Problem = err.Error()
		return status
	}
	if status.Nodes, err = listNodes(ctx, client); err != nil {
		status.Problem = err.Error()
		return status
	}
	status.Healthy = true
	return status
}

func listNodes(ctx context.Context, client kubernetes.Interface) ([]NodeStatus, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var all []NodeStatus
	for _, node := range list.Items {
		one := NodeStatus{Name: node.Name, Kind: node.Labels[simulated.NodeLabel], Zone: node.Labels[corev1.LabelTopologyZone], Ready: ready(&node)}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				one.Address = address.Address
			}
		}
		all = append(all, one)
	}
	return all, nil
}
