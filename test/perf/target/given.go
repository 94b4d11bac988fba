// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"path/filepath"

	"github.com/regatta-sh/regatta/test/cluster/state"
	"github.com/regatta-sh/regatta/test/perf/procfs"
)

// GivenOptions describe a cluster that runs already.
type GivenOptions struct {
	Kubeconfig string
	Name       string // of the implementation
	Version    string
	User       string // whose writes are counted
	AuditLog   string
	PIDs       []int
	Program    string // whose processes are measured, where PIDs are not given
	Metrics    string
}

// Given takes a cluster as it is. For a local cluster, options that are not set are found.
func Given(o GivenOptions) (*Target, error) {
	t := &Target{}
	own, err := localOf(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if own != nil {
		if err := t.know(own); err != nil {
			return nil, err
		}
	}
	if o.AuditLog != "" {
		t.AuditLog = o.AuditLog
	}
	if o.Metrics != "" {
		t.Metrics = []string{o.Metrics}
	}
	t.Subject.Name, t.Subject.Version, t.Subject.User, t.Subject.PIDs = o.Name, o.Version, o.User, o.PIDs
	if len(o.PIDs) == 0 && o.Program != "" {
		if t.Subject.PIDs, err = procfs.Named(o.Program); err != nil {
			return nil, err
		}
		if len(t.Subject.PIDs) == 0 {
			return nil, fmt.Errorf("finding %s: no process on this machine runs a program of that name", o.Program)
		}
	}
	for name, pids := range t.Peers { // the one measured is no noise
		for _, pid := range t.Subject.PIDs {
			if len(pids) == 1 && pids[0] == pid {
				delete(t.Peers, name)
			}
		}
	}
	return t, t.connect(o.Kubeconfig)
}

// localOf finds the local cluster that a kubeconfig is of, nil if it is none.
func localOf(kubeconfig string) (*state.State, error) {
	path, err := filepath.Abs(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	all, err := state.List()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if filepath.Dir(path) == s.Dir || filepath.Dir(filepath.Dir(path)) == s.Dir {
			return s, nil
		}
	}
	return nil, nil
}
