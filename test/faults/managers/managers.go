// SPDX-License-Identifier: Apache-2.0

// Package managers runs replicas of the manager beside a cluster of simulated
// nodes, and kills them.
package managers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/faults/balance"
	"github.com/regatta-sh/regatta/test/install"
)

// ShortLease are arguments with which another manager leads soon where one is killed.
func ShortLease() []string {
	return []string{"--leader-election-lease-duration=6s", "--leader-election-renew-deadline=4s", "--leader-election-retry-period=1s"}
}

// Replica is one manager.
type Replica struct {
	name    string
	cluster *local.Cluster
	spec    process.Spec
	ports   map[string]int
	// Kills counts how often it was killed.
	Kills int
}

// New finds ports for n replicas of a program. Arguments are those of all. The
// host is what the API server calls them by.
func New(cluster *local.Cluster, program string, n int, args ...string) ([]*Replica, error) {
	config, err := cluster.Kubeconfig("kruise-manager")
	if err != nil {
		return nil, err
	}
	names := []string{"webhook", "metrics", "health", "decisions"}
	ports, err := addresses.AnyPorts(n * len(names))
	if err != nil {
		return nil, err
	}
	var out []*Replica
	for i := range n {
		r := &Replica{name: fmt.Sprintf("kruise-manager-%d", i), cluster: cluster, ports: map[string]int{}}
		for j, name := range names {
			r.ports[name] = ports[i*len(names)+j]
		}
		dir := cluster.State.Dir
		at := func(what string) string { return "127.0.0.1:" + strconv.Itoa(r.ports[what]) }
		r.spec = process.Spec{
			Name: r.name, Path: "/usr/bin/env", Log: filepath.Join(dir, "logs", r.name+".log"),
			Args: append([]string{
				"KUBECONFIG=" + config, "WEBHOOK_PORT=" + strconv.Itoa(r.ports["webhook"]),
				"WEBHOOK_CERT_DIR=" + filepath.Join(dir, r.name+"-certs"), "WEBHOOK_HOST=localhost", "POD_NAMESPACE=kruise-system",
				program, "--metrics-addr=" + at("metrics"), "--health-probe-addr=" + at("health"), "--decisions-addr=" + at("decisions"),
				"--enable-pprof=false", "--v=1",
			}, args...),
		}
		out = append(out, r)
	}
	return out, nil
}

// Webhooks is the address of its webhooks.
func (r *Replica) Webhooks() string { return "127.0.0.1:" + strconv.Itoa(r.ports["webhook"]) }

// Metrics is the URL of its metrics.
func (r *Replica) Metrics() string {
	return fmt.Sprintf("http://127.0.0.1:%d/metrics", r.ports["metrics"])
}

// Start starts it.
func (r *Replica) Start() error {
	if err := os.MkdirAll(filepath.Dir(r.spec.Log), 0o755); err != nil {
		return fmt.Errorf("making the folder for logs: %w", err)
	}
	_, err := process.Start(r.cluster.State.Dir, r.spec)
	return err
}

// Kill ends it in the middle of whatever it does.
func (r *Replica) Kill(ctx context.Context) error {
	r.Kills++
	return process.Kill(ctx, r.cluster.State.Dir, func(p process.Running) bool { return p.Name == r.name })
}

// Ready says whether it says so.
func (r *Replica) Ready() bool {
	client := &http.Client{Timeout: time.Second}
	resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", r.ports["health"]))
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// said is the end of its log.
func (r *Replica) said() string {
	raw, err := os.ReadFile(r.spec.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(lines[max(len(lines)-15, 0):], "\n")
}

// Install installs Regatta on a cluster of simulated nodes with replicas of the
// manager beside it, behind one address, and waits until all are ready. The caller
// closes the balancer.
func Install(ctx context.Context, o install.Options, n int, args ...string) ([]*Replica, *balance.Balancer, error) {
	replicas, err := New(o.Cluster, o.Programs["kruise-manager"], n, args...)
	if err != nil {
		return nil, nil, err
	}
	var backends []string
	for _, r := range replicas {
		backends = append(backends, r.Webhooks())
	}
	balancer, err := balance.Listen(ctx, backends...)
	if err != nil {
		return nil, nil, err
	}
	o.Webhooks = fmt.Sprintf("https://localhost:%d", balancer.Port())
	if err := start(ctx, o, replicas); err != nil {
		return nil, nil, errors.Join(err, balancer.Close())
	}
	return replicas, balancer, nil
}

func start(ctx context.Context, o install.Options, replicas []*Replica) error {
	if _, err := install.Install(ctx, o); err != nil {
		return err
	}
	for _, r := range replicas {
		if err := r.Start(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return AwaitReady(ctx, replicas)
}

// AwaitReady waits until all are ready.
func AwaitReady(ctx context.Context, all []*Replica) error {
	for _, r := range all {
		for !r.Ready() {
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for %s: %w; it said last:\n%s", r.name, context.Cause(ctx), r.said())
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	return nil
}
