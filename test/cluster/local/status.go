// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
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

// An EndedProcess is one that Start starts, and that does not run.
type EndedProcess struct {
	Name string
	// Why is the last line of its log that says why a program ends, or the end of the log. The log has the runs before, too: of a
	// process that was killed after a run that failed, it is why that run ended.
	Why string
}

// ListEnded returns the processes that Start starts, and that do not run.
func (c *Cluster) ListEnded() ([]EndedProcess, error) {
	missing, err := c.missing()
	if err != nil {
		return nil, err
	}
	var ended []EndedProcess
	for _, spec := range c.State.Processes {
		if slices.Contains(missing, spec.Name) {
			ended = append(ended, EndedProcess{spec.Name, cmp.Or(readFatalLine(spec.Log), tail(spec.Log))})
		}
	}
	return ended, nil
}

// fatalLine is how klog and Go say why a program ends. Stacks of all its goroutines follow.
var fatalLine = regexp.MustCompile(`^(F[0-9]{4} |panic: |fatal error: )`)

// readFatalLine returns the last line of a log that says why the program ended, or "".
func readFatalLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	last, lines := "", bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		if fatalLine.MatchString(line) {
			last = strings.TrimSpace(line)
		}
		if err != nil {
			return last
		}
	}
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
