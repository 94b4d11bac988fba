// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Start runs spec for the cluster in dir, detached from the caller: a session
// of its own, no terminal, and no more environment than it needs. Proxy
// settings, for one, would send requests for pod addresses elsewhere.
func Start(dir string, spec Spec) (int, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return 0, fmt.Errorf("making the log directory of %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}
	defer log.Close()
	command := exec.Command(spec.Path, spec.Args...)
	command.Dir = dir
	command.Env = Environment(dir, spec.Name)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := command.Start
	if spec.Machine != "" {
		start = func() error { return startMachine(command, spec.Machine) }
	}
	if err := start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	// The process is reaped here while the caller runs; init does it afterwards.
	go func() { _ = command.Wait() }()
	return command.Process.Pid, nil
}

// Environment is what every process of a cluster runs with.
func Environment(dir, name string) []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + dir,
		"TMPDIR=" + filepath.Join(dir, "tmp"),
		clusterVariable + "=" + dir,
		nameVariable + "=" + name,
		// Memory is there, and CPU is not: an API server with a small heap collects garbage
		// for a fifth of its time. There is not so much that each may take five times what it
		// needs: an API server took 2.5 GiB, and the kernel ends the largest first.
		"GOGC=400",
		"GOMEMLIMIT=1GiB",
	}
}
