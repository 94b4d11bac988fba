// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// RunMachine is the first process of a node: it makes the file system that the
// node sees, starts its programs, starts them again when they end, and buries
// the orphans. It returns only if it fails.
func RunMachine(s *state.State, number int, logger *log.Logger) error {
	if os.Getpid() != 1 {
		// Mounts made here would be the host's.
		return errors.New("this is started by up, as the first process of a node")
	}
	n := newNode(s, number)
	if err := n.mount(); err != nil {
		return err
	}
	// A machine that was killed and is started again left the cgroups of its
	// containers, and the kubelet would look for these, for seconds each.
	if err := removeCgroups(func(name string) bool { return "/"+name == n.cgroup() }); err != nil {
		return err
	}
	if err := n.makeCgroups(); err != nil {
		return err
	}
	specs, err := n.readPrograms()
	if err != nil {
		return err
	}
	running := map[int]process.Spec{}
	for _, spec := range specs {
		pid, err := launch(s.Dir, spec)
		if err != nil {
			return err
		}
		running[pid] = spec
		if spec.Name == n.name+"/"+Containerd {
			waitForSocket("/run/containerd/containerd.sock")
		}
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting for the programs of %s: %w", n.name, err)
		}
		spec, ours := running[pid]
		if !ours {
			continue
		}
		delete(running, pid)
		logger.Printf("%s ended (exit %d, signal %d); starting it again", spec.Name, status.ExitStatus(), status.Signal())
		time.Sleep(time.Second)
		if pid, err = launch(s.Dir, spec); err != nil {
			return err
		}
		running[pid] = spec
	}
}

// launch starts a program without waiting for it: a process that waits for one child
// must wait for all, or the orphans of containers are never buried.
func launch(dir string, spec process.Spec) (int, error) {
	path, err := exec.LookPath(spec.Path)
	if err != nil {
		return 0, fmt.Errorf("finding %s: %w", spec.Name, err)
	}
	output, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}
	defer output.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	defer null.Close()
	started, err := os.StartProcess(path, append([]string{filepath.Base(path)}, spec.Args...), &os.ProcAttr{
		Dir: dir, Env: process.Environment(dir, spec.Name), Files: []*os.File{null, output, output},
	})
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	pid := started.Pid
	return pid, started.Release()
}

// waitForSocket waits for a program to listen, but not for long: the others
// are started again until they find it.
func waitForSocket(path string) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if connection, err := net.Dial("unix", path); err == nil {
			_ = connection.Close()
			return
		}
	}
}
