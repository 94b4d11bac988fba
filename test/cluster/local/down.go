// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/cluster/controlplane"
	"github.com/regatta-sh/regatta/test/cluster/credentials"
	"github.com/regatta-sh/regatta/test/cluster/nodes"
	"github.com/regatta-sh/regatta/test/cluster/process"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// Down removes all there is of the named cluster, however it was left. It is
// no error if there is nothing.
func Down(ctx context.Context, name string, out io.Writer) error {
	dir, err := state.Dir(name)
	if err != nil {
		return err
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		return err
	}
	unlock, err := lockName(ctx, cache, name, out)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = os.Stat(dir)
	existed := !errors.Is(err, fs.ErrNotExist)
	if err := remove(ctx, dir); err != nil {
		return err
	}
	if existed {
		fmt.Fprintf(out, "cluster %q is gone\n", name)
	} else {
		fmt.Fprintf(out, "there is no cluster %q\n", name)
	}
	return nil
}

// remove finds what belongs to the cluster in dir by its marks, not by what
// was recorded: the record may be missing, old or half-written.
func remove(ctx context.Context, dir string) error {
	var problems []error
	if recorded, err := state.Load(filepath.Base(dir)); err == nil && recorded.Merged != "" {
		// Not a reason to leave processes running.
		problems = append(problems, credentials.Unmerge(recorded.Merged, recorded.Name))
	}
	if err := process.KillAll(ctx, dir, controlplane.APIServer); err != nil {
		return errors.Join(append(problems, err)...)
	}
	if err := removeNodes(ctx, dir); err != nil {
		return errors.Join(append(problems, err)...)
	}
	return errors.Join(append(problems, state.Remove(dir))...)
}

func removeNodes(ctx context.Context, dir string) error {
	unlock, err := lockNetwork(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return nodes.Remove(ctx, state.Identifier(dir))
}

// lockNetwork keeps a cluster from making network namespaces while another
// removes the last of its own, and with it the directory that they lie in.
func lockNetwork(ctx context.Context) (func(), error) {
	cache, err := binaries.CacheDir()
	if err != nil {
		return nil, err
	}
	return binaries.Lock(ctx, filepath.Join(cache, "locks", "network"), nil)
}
