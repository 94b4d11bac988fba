// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/cluster/process"
)

// host is a manager that runs on this machine, beside a cluster that cannot run
// pods. The API server reaches its webhooks at a URL.
type host struct {
	cluster *local.Cluster
	program string
	config  string // kubeconfig
	ports   map[string]int
	more    []string // arguments
}

// managerUser is whose writes the audit log shows as the manager's.
const managerUser = "kruise-manager"

func newHost(o Options) (*host, error) {
	config, err := o.Cluster.Kubeconfig(managerUser)
	if err != nil {
		return nil, err
	}
	h := &host{cluster: o.Cluster, program: o.Programs["kruise-manager"], config: config, ports: map[string]int{}, more: o.Arguments}
	names := []string{"webhook", "metrics", "health", "decisions", "pprof"}
	ports, err := addresses.AnyPorts(len(names))
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		h.ports[name] = ports[i]
	}
	return h, nil
}

func (h *host) endpoint() string { return fmt.Sprintf("https://localhost:%d", h.ports["decisions"]) }

func (h *host) values() []string {
	return webhooksAt(fmt.Sprintf("https://localhost:%d", h.ports["webhook"]))
}

// webhooksAt are arguments for helm where the manager runs beside the cluster.
func webhooksAt(url string) []string {
	return []string{
		"--set", "manager.replicas=0", "--set", "webhookConfiguration.url=" + url,
		"--set-string", "daemon.nodeSelector.regatta\\.sh/real=true", // a simulated node has no container runtime
	}
}

// start starts the manager for as long as the cluster runs: taking the cluster
// down ends it. It waits for the chart by being started again until it finds
// what it needs, as a pod would be.
func (h *host) start() error {
	dir := h.cluster.State.Dir
	certs := filepath.Join(dir, "manager-certs")
	more := os.Getenv("REGATTA_MANAGER_ARGS")
	for _, argument := range h.more {
		more += " " + Word(argument)
	}
	script := fmt.Sprintf(`
export KUBECONFIG=%s WEBHOOK_PORT=%d WEBHOOK_CERT_DIR=%s WEBHOOK_HOST=localhost POD_NAMESPACE=kruise-system
while :; do
  %s --metrics-addr=127.0.0.1:%d --health-probe-addr=127.0.0.1:%d --decisions-addr=127.0.0.1:%d --pprof-addr=127.0.0.1:%d --v=1 %s
  sleep 1
done`, Word(h.config), h.ports["webhook"], Word(certs), Word(h.program), h.ports["metrics"], h.ports["health"], h.ports["decisions"], h.ports["pprof"], more)
	_, err := process.Start(dir, process.Spec{
		Name: "kruise-manager", Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(dir, "logs", "kruise-manager.log"),
	})
	if err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "manager-health"), []byte(fmt.Sprintf("http://127.0.0.1:%d/readyz", h.ports["health"])), 0o600)
}

// Word is text as one word of a shell.
func Word(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// waitReady waits until the manager on this machine says it is ready.
func waitReady(ctx context.Context, _ Installed, o Options) error {
	raw, err := os.ReadFile(filepath.Join(o.Cluster.State.Dir, "manager-health"))
	if err != nil {
		return fmt.Errorf("finding the manager: %w", err)
	}
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}
	for end := time.Now().Add(2 * time.Minute); ; {
		if resp, err := client.Get(string(raw)); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("waiting for the manager: it is not ready after 2 minutes; see %s/logs/kruise-manager.log", o.Cluster.State.Dir)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
