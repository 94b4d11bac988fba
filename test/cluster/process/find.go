// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Find returns the running processes of the cluster in dir. Zombies are not
// among them: they have no environment any more.
func Find(dir string) ([]Running, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []Running
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process that is gone by now, or someone else's, cannot be read.
		environment, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil {
			continue
		}
		cluster, name := marks(environment)
		if cluster != dir {
			continue
		}
		executable, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		if err != nil {
			continue
		}
		found = append(found, Running{PID: pid, Name: name, Executable: filepath.Base(executable)})
	}
	return found, nil
}

func marks(environment []byte) (cluster, name string) {
	for _, variable := range bytes.Split(environment, []byte{0}) {
		key, value, _ := bytes.Cut(variable, []byte("="))
		switch string(key) {
		case clusterVariable:
			cluster = string(value)
		case nameVariable:
			name = string(value)
		}
	}
	return cluster, name
}

// Names returns the set of names among processes. The shims of containers do
// not count: they outlive the containerd whose name they have inherited.
func Names(processes []Running) map[string]bool {
	names := map[string]bool{}
	for _, running := range processes {
		if !strings.HasPrefix(running.Executable, "containerd-shim") {
			names[running.Name] = true
		}
	}
	return names
}
