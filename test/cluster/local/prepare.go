// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// prepare chooses the addresses of a new cluster and records them, before
// anything uses them. Clusters choose one after the other, so that two that
// start together do not choose the same.
func prepare(ctx context.Context, cache string, options Options) (*state.State, error) {
	unlock, err := binaries.Lock(ctx, filepath.Join(cache, "locks", "addresses"), nil)
	if err != nil {
		return nil, err
	}
	defer unlock()
	others, err := state.List()
	if err != nil {
		return nil, err
	}
	used, err := addresses.InUse()
	if err != nil {
		return nil, err
	}
	var ports []int
	for _, other := range others {
		used = append(used, other.Plan.All())
		ports = append(ports, other.Ports.All()...)
	}
	dir, err := state.Dir(options.Name)
	if err != nil {
		return nil, err
	}
	made := &state.State{
		Name: options.Name, Dir: dir, Created: time.Now(),
		Real: options.Real, Simulated: options.Simulated, Zones: options.Zones, Delay: options.Delay, CSI: options.CSI, Kubernetes: options.Kubernetes,
	}
	if err := assign(made, used, ports); err != nil {
		return nil, err
	}
	for _, sub := range []string{"logs", "tmp", "volumes"} {
		if err := os.MkdirAll(made.Path(sub), 0o755); err != nil {
			return nil, fmt.Errorf("making the cluster directory: %w", err)
		}
	}
	return made, made.Save()
}

func assign(made *state.State, used []netip.Prefix, taken []int) error {
	plan, err := addresses.Choose(used)
	if err != nil {
		return err
	}
	wanted := &state.Ports{}
	ports, err := addresses.Ports(len(wanted.All()), taken)
	if err != nil {
		return err
	}
	wanted.Set(ports)
	made.Plan, made.Ports = plan, *wanted
	return nil
}

// step tells how long a part of the start took.
func step(out io.Writer, what string, work func() error) error {
	started := time.Now()
	if err := work(); err != nil {
		return err
	}
	fmt.Fprintf(out, "  %-28s %5.1fs\n", what, time.Since(started).Seconds())
	return nil
}
