// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/regatta-sh/regatta/test/cluster/process"
)

// Remove removes the network and cgroups of a cluster's real nodes, whose
// processes are dead already. Everything is found by the cluster's ID.
func Remove(ctx context.Context, id string) error {
	ours := func(name string) bool { return strings.HasPrefix(name, networkPrefix(id)) }
	return errors.Join(removeNamespaces(ours), removeInterfaces(ctx, id), removeCgroups(ours))
}

func removeNamespaces(ours func(name string) bool) error {
	entries, err := os.ReadDir(process.NetNSDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing network namespaces: %w", err)
	}
	for _, entry := range entries {
		if !ours(entry.Name()) {
			continue
		}
		path := filepath.Join(process.NetNSDir, entry.Name())
		// Not mounted is fine: the command that made it may have died half-way.
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmounting the network namespace %s: %w", entry.Name(), err)
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing the network namespace %s: %w", entry.Name(), err)
		}
	}
	return removeNetNSDir()
}

// removeNetNSDir removes the directory of namespaces when the last has gone:
// iproute2 makes it, and a mount on it, with the first.
func removeNetNSDir() error {
	entries, err := os.ReadDir(process.NetNSDir)
	if err != nil || len(entries) > 0 {
		return nil
	}
	if err := unix.Unmount(process.NetNSDir, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmounting the directory of network namespaces: %w", err)
	}
	if err := os.Remove(process.NetNSDir); err != nil {
		return fmt.Errorf("removing the directory of network namespaces: %w", err)
	}
	return nil
}

// removeInterfaces removes the bridge and what is plugged into it. Routes go
// with the interface they lead to.
func removeInterfaces(ctx context.Context, id string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		left, err := interfaces(id)
		if err != nil || len(left) == 0 {
			return err
		}
		var last error
		for _, name := range left {
			// The kernel removes the cable of a dying namespace by itself, a
			// moment later: that one is gone already is no failure.
			last = ip(ctx, "", []string{"link delete " + name})
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("removing the interfaces %s: %w", strings.Join(left, ", "), last)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func interfaces(id string) ([]string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("listing interfaces: %w", err)
	}
	var found []string
	for _, one := range all {
		if one.Name == bridge(id) || strings.HasPrefix(one.Name, bridge(id)+"-") {
			found = append(found, one.Name)
		}
	}
	return found, nil
}
