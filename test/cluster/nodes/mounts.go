// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// private lists the directories that every node has to itself, and where they
// lie in the node's directory. The rest of the host's file system is shared.
func private() map[string]string {
	return map[string]string{"/var/lib": "lib", "/var/log": "log"}
}

// CheckPath refuses a directory that nodes could not see, because a directory of
// the node is mounted over it.
func CheckPath(what, path string) error {
	for _, hidden := range []string{"/run", "/var/run", "/var/lib", "/var/log", "/proc"} {
		if path == hidden || strings.HasPrefix(path, hidden+"/") {
			return fmt.Errorf("%s is %s, but nodes have a %s of their own; set XDG_STATE_HOME and XDG_CACHE_HOME to directories elsewhere", what, path, hidden)
		}
	}
	return nil
}

// mount makes the node's file system. It happens in the node's own mount
// namespace, so that nothing needs to be undone.
func (n node) mount() error {
	// First of all, keep what follows from spreading to the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating the mounts of %s: %w", n.name, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc of %s: %w", n.name, err)
	}
	if err := unix.Mount("run", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run of %s: %w", n.name, err)
	}
	for target, source := range private() {
		if err := unix.Mount(n.path(source), target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s of %s: %w", target, n.name, err)
		}
	}
	if err := n.fixSysctls(); err != nil {
		return err
	}
	// Volumes are mounted in one namespace and seen in those of containers.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing the mounts of %s: %w", n.name, err)
	}
	return n.setSysctls()
}

// fixSysctls hides the kernel settings that the kubelet insists on behind files
// that have the values which it requires. They belong to the whole machine, which a
// test must not change.
func (n node) fixSysctls() error {
	wanted := map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0",
		"kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	}
	for name, value := range wanted {
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); err != nil {
			continue
		}
		source := n.path("sysctl", strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(source, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("writing the setting %s: %w", name, err)
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("covering the setting %s: %w", name, err)
		}
	}
	return nil
}

// setSysctls changes settings of the node's own network.
func (n node) setSysctls() error {
	for name, value := range map[string]string{
		"net/ipv4/ip_forward": "1",
		// Requests to a service and their replies may take different ways.
		"net/ipv4/conf/all/rp_filter":     "0",
		"net/ipv4/conf/default/rp_filter": "0",
		"net/ipv4/conf/eth0/rp_filter":    "0",
	} {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}
