// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies lists where cgroups can be made: one place in version 2, one a
// controller in version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("listing cgroups: %w", err)
	}
	var found []string
	for _, entry := range entries {
		// Combined controllers are links to one directory.
		path := filepath.Join(cgroupRoot, entry.Name())
		if entry.IsDir() {
			found = append(found, path)
		}
	}
	return found, nil
}

// makeCgroups makes the node's cgroup in every hierarchy: the kubelet makes its
// own below, but not this one.
func (n node) makeCgroups() error {
	parents, err := hierarchies()
	if err != nil {
		return err
	}
	for _, parent := range parents {
		path := filepath.Join(parent, n.cgroup())
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		// In version 1 these start empty, and nothing may run until they are set.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inherit(parent, path, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func inherit(parent, path, name string) error {
	if filepath.Base(parent) != "cpuset" {
		return nil
	}
	value, err := os.ReadFile(filepath.Join(parent, name))
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(path, name), value, 0o644); err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	return nil
}

// removeCgroups removes the top cgroups that match, with all below.
func removeCgroups(match func(name string) bool) error {
	parents, err := hierarchies()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, parent := range parents {
		entries, err := os.ReadDir(parent)
		if err != nil {
			return fmt.Errorf("listing cgroups: %w", err)
		}
		for _, entry := range entries {
			if entry.IsDir() && match(entry.Name()) {
				if err := removeCgroup(filepath.Join(parent, entry.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeCgroup removes a cgroup and those below, the deepest first: rmdir is
// the only way, and fails for as long as the kernel counts a dying process.
func removeCgroup(path string) error {
	var dirs []string
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing the cgroups in %s: %w", path, err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for i := len(dirs) - 1; i >= 0; i-- {
		for {
			err := os.Remove(dirs[i])
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("removing a cgroup: %w", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}
