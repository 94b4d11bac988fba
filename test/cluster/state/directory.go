// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

const fileName = "state.json"

// Root is where clusters are kept: ${XDG_STATE_HOME:-~/.local/state}/regatta/clusters.
func Root() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding the state directory: %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(base) {
		return "", fmt.Errorf("XDG_STATE_HOME is %q, which is not an absolute path", base)
	}
	return filepath.Join(base, "regatta", "clusters"), nil
}

// Dir is the directory of the named cluster, whether or not it exists.
func Dir(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, name), nil
}

// CheckName refuses names that do not fit into host names and file names.
func CheckName(name string) error {
	if !regexp.MustCompile(`^[a-z]([-a-z0-9]{0,28}[a-z0-9])?$`).MatchString(name) {
		return fmt.Errorf("%q is no name for a cluster: it takes up to 30 lower-case letters, digits and dashes, beginning with a letter and not ending with a dash", name)
	}
	return nil
}

// ErrNotFound is returned for a cluster of which nothing is recorded.
var ErrNotFound = errors.New("there is no such cluster; bring it up first")

// Load reads the state of the named cluster.
func Load(name string) (*State, error) {
	dir, err := Dir(name)
	if err != nil {
		return nil, err
	}
	return LoadDir(dir)
}

// LoadDir reads the state of the cluster in dir. It is for the cluster's own
// processes, which do not have the environment that Dir follows.
func LoadDir(dir string) (*State, error) {
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the state of %q: %w", filepath.Base(dir), ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of %q: %w", filepath.Base(dir), err)
	}
	state := &State{}
	if err := json.Unmarshal(data, state); err != nil {
		return nil, fmt.Errorf("decoding the state of %q: %w", filepath.Base(dir), err)
	}
	if state.Dir != dir {
		return nil, fmt.Errorf("the state in %q is that of %q", dir, state.Dir)
	}
	return state, nil
}

// List returns the readable states of all clusters.
func List() ([]*State, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	var states []*State
	for _, entry := range entries {
		// A half-made or broken cluster must not keep others from starting.
		if state, err := Load(entry.Name()); err == nil {
			states = append(states, state)
		}
	}
	return states, nil
}

// Remove deletes the cluster's directory, and those above it that only hold
// clusters, when they are empty.
func Remove(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the cluster directory: %w", err)
	}
	for _, parent := range []string{filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
		if os.Remove(parent) != nil {
			break
		}
	}
	return nil
}
