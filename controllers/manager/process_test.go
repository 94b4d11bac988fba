// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
)

// runManager is the program in short.
func runManager(args []string) error {
	o, err := parsed(args)
	if err != nil {
		return err
	}
	o.gateMemory = testMemory
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	return Run(ctrl.SetupSignalHandler(), o, config)
}

// parsed is what the program makes of its arguments; the logs are set up then.
func parsed(args []string) (*Options, error) {
	o, err := NewOptions()
	if err != nil {
		return nil, err
	}
	fs := pflag.NewFlagSet("kruise-manager", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if err := o.Complete(); err != nil {
		return nil, err
	}
	return o, nil
}

// process is a manager in a process of its own: metrics and logs are one for a
// process, and losing an election ends it.
type process struct {
	t                        *testing.T
	command                  *exec.Cmd
	ended                    chan error
	health, metrics, explain string

	mu  sync.Mutex
	log bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	return freeAddresses(t, 1)[0]
}

// freeAddresses are different ones.
func freeAddresses(t *testing.T, count int) (out []string) {
	t.Helper()
	ports, err := addresses.AnyPorts(count)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		out = append(out, fmt.Sprintf("127.0.0.1:%d", port))
	}
	return out
}

func startManager(t *testing.T, kubeconfig []byte, env []string, args ...string) *process {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	at := freeAddresses(t, 4)
	p := &process{t: t, ended: make(chan error, 1), health: at[0], metrics: at[1], explain: at[2]}
	_, port, _ := net.SplitHostPort(at[3])
	args = append([]string{
		"--health-probe-addr=" + p.health, "--metrics-addr=" + p.metrics, "--decisions-addr=" + p.explain, "--pprof-addr=0",
		// Who is kept from the processors for so long loses the lease, and ends.
		"--leader-election-lease-duration=12s", "--leader-election-renew-deadline=9s", "--leader-election-retry-period=1s",
		"--protection-log-path=" + dir, "--v=1",
	}, args...)
	p.command = exec.Command(os.Args[0])
	p.command.Env = append(os.Environ(), "REGATTA_TEST_MANAGER="+strings.Join(args, " "), "KUBECONFIG="+config,
		"WEBHOOK_PORT="+port, "WEBHOOK_CERT_DIR="+filepath.Join(dir, "certs"))
	p.command.Env = append(p.command.Env, env...)
	p.command.Stdout, p.command.Stderr = p, p
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.command.Wait() }()
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // it may have ended
		if t.Failed() {
			t.Logf("a manager logged\n%s", regexp.MustCompile(`(?m)^.*healthz check failed.*\n`).ReplaceAllString(p.text(), ""))
		}
	})
	return p
}

// wait waits for the process to end.
func (p *process) wait() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(2 * time.Minute):
		p.t.Fatal("it does not end")
		return nil
	}
}

func (p *process) stop() error {
	p.t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

// get is what the process answers on an address; the code of no answer is 0.
func (p *process) get(address, path string) (int, string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, body.String()
}

func (p *process) ready() bool { code, _ := p.get(p.health, "/readyz"); return code == http.StatusOK }

func (p *process) leads() string {
	_, body := p.get(p.metrics, "/metrics")
	for line := range strings.SplitSeq(body, "\n") {
		if v, ok := strings.CutPrefix(line, "kruise_manager_is_leader "); ok {
			return v
		}
	}
	return "unknown"
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 2 minutes for this: %s", what)
		}
	}
}
