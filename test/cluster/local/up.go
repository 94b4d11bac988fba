// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// Up brings up the cluster that options describe. A healthy one of that name
// is reused, a broken one is removed first.
func Up(ctx context.Context, options Options) (*Cluster, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		return nil, err
	}
	unlock, err := lockName(ctx, cache, options.Name, options.Out)
	if err != nil {
		return nil, err
	}
	defer unlock()
	existing, err := reuse(ctx, options)
	if err != nil || existing != nil {
		return existing, err
	}
	if options.unspecified() {
		options.Simulated = DefaultSimulated
	}
	started := time.Now()
	programs, directory, err := install(ctx, cache, options)
	if err != nil {
		return nil, err
	}
	if options.Self == "" {
		self, remove, err := buildSelf(ctx, cache, options.Out)
		if err != nil {
			return nil, err
		}
		defer remove()
		options.Self = self
	}
	prepared, err := prepare(ctx, cache, options)
	if err != nil {
		return nil, err
	}
	prepared.Programs = directory
	cluster := &Cluster{State: prepared}
	if err := cluster.start(ctx, programs, options); err != nil {
		if ctx.Err() != nil {
			// What was being waited for at that moment explains nothing.
			err = fmt.Errorf("starting the cluster %q: %w", options.Name, context.Cause(ctx))
		}
		return nil, errors.Join(err, abandon(ctx, cluster, options))
	}
	fmt.Fprintf(options.Out, "cluster %q is up, after %s\n", options.Name, time.Since(started).Round(100*time.Millisecond))
	return cluster, nil
}

// lockName keeps two commands from working on one cluster at a time. The lock
// lies in the cache, because the cluster's own directory comes and goes.
func lockName(ctx context.Context, cache, name string, out io.Writer) (func(), error) {
	dir, err := state.Dir(name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(cache, "locks", name+"-"+state.Identifier(dir))
	return binaries.Lock(ctx, path, func() {
		fmt.Fprintf(out, "another command is working on the cluster %q; waiting for it\n", name)
	})
}

// reuse returns the cluster of that name if it is healthy. If there is none, or a
// broken one, reuse removes what is left of it and returns nil.
func reuse(ctx context.Context, options Options) (*Cluster, error) {
	dir, err := state.Dir(options.Name)
	if err != nil {
		return nil, err
	}
	existing, err := Open(options.Name)
	if errors.Is(err, state.ErrNotFound) {
		// A crash may have left processes or a directory without a state.
		return nil, remove(ctx, dir)
	}
	if err != nil {
		fmt.Fprintf(options.Out, "cluster %q is broken (%v); removing it\n", options.Name, err)
		return nil, remove(ctx, dir)
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := existing.Check(limited); err != nil {
		fmt.Fprintf(options.Out, "cluster %q is broken (%v); removing it\n", options.Name, err)
		return nil, remove(ctx, dir)
	}
	has := existing.State
	if err := options.checkReuse(has); err != nil {
		return nil, err
	}
	if err := existing.merge(options.Kubeconfig); err != nil {
		return nil, err
	}
	fmt.Fprintf(options.Out, "cluster %q is up already, with Kubernetes %s and %d real and %d simulated nodes; using it\n",
		options.Name, binaries.ResolveKubernetes(has.Kubernetes), has.Real, has.Simulated)
	return existing, nil
}

// checkReuse refuses a cluster that runs as other options asked for.
func (o Options) checkReuse(has *state.State) error {
	const instead = "take it down first, or choose another name"
	is := binaries.ResolveKubernetes(has.Kubernetes)
	switch {
	case !o.unspecified() && (has.Real != o.Real || has.Simulated != o.Simulated):
		return fmt.Errorf("cluster %q runs with %d real and %d simulated nodes, not %d and %d: %s", o.Name, has.Real, has.Simulated, o.Real, o.Simulated, instead)
	case !o.unspecified() && has.Delay != o.Delay:
		return fmt.Errorf("cluster %q runs with requests delayed by %v, not %v: %s", o.Name, has.Delay, o.Delay, instead)
	case o.Kubernetes != "" && o.Kubernetes != is:
		return fmt.Errorf("cluster %q runs Kubernetes %s, not %s: %s", o.Name, is, o.Kubernetes, instead)
	case o.CSI && !has.CSI:
		return fmt.Errorf("cluster %q runs without a CSI driver: %s", o.Name, instead)
	}
	return nil
}

// abandon removes what a failed start has made, unless it is to be looked at.
func abandon(ctx context.Context, cluster *Cluster, options Options) error {
	if options.Keep {
		fmt.Fprintf(options.Out, "keeping what there is of the cluster; its logs are in %s\n", cluster.State.Path("logs"))
		return nil
	}
	// The caller may have been interrupted, which is no reason to leave a mess.
	return remove(context.WithoutCancel(ctx), cluster.State.Dir)
}
