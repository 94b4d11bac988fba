// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/faults/daemon"
	"github.com/regatta-sh/regatta/test/faults/trap"
)

// runtimes kills the container runtime in the middle of a pull and of a restart, and deletes a
// pod in the middle of its restart. The agent runs on.
func (w *world) runtimes(ctx context.Context, d *daemon.Daemon) (err error) {
	if err := d.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.End(context.WithoutCancel(ctx))) }()
	killed := func(ctx context.Context) error { return w.cluster.Kill(ctx, d.Node+"/containerd") }
	j := &job{world: w, name: fmt.Sprintf("pull-%d", w.next()), node: d.Node, image: fmt.Sprintf("faults-%d:slow-4s", w.next()), timeout: 60, retries: 3}
	if err := w.amid(ctx, d, j, "containerd killed", "a pull", pull, killed, j.end); err != nil {
		return err
	}
	for _, call := range []string{hook, stop} {
		r := &restart{world: w, name: fmt.Sprintf("restart-%d", w.next()), node: d.Node, seconds: 2, linger: 2}
		if err := r.prepare(ctx); err != nil {
			return err
		}
		if err := w.amid(ctx, d, r, "containerd killed in "+call, "a restart", call, killed, r.end); err != nil {
			return err
		}
	}
	for _, call := range []string{hook, stop} {
		r := &restart{world: w, name: fmt.Sprintf("restart-%d", w.next()), node: d.Node, seconds: 3, linger: 3}
		if err := r.prepare(ctx); err != nil {
			return err
		}
		deleted := func(ctx context.Context) error {
			return r.Delete(ctx, &corev1.Pod{ObjectMeta: r.meta()}, &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1)})
		}
		err := w.amid(ctx, d, leaving{r}, "pod deleted in "+call, "a restart", call, deleted, leaving{r}.end)
		if err != nil {
			return err
		}
	}
	return nil
}

// amid begins a try, breaks something in the middle of a call, and notes what became of it.
func (w *world) amid(ctx context.Context, d *daemon.Daemon, t try, broken, in, call string, breaks func(context.Context) error, end func(context.Context, *trap.Trap) (string, error)) error {
	d.Trap.Set(trap.Point{}, nil)
	if err := t.begin(ctx); err != nil {
		return err
	}
	begun, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := d.Trap.Await(begun, call, 1); err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond) // until it is under way
	start := time.Now()
	if err := breaks(ctx); err != nil {
		return err
	}
	became, err := end(ctx, d.Trap)
	took := time.Since(start)
	if err == nil {
		time.Sleep(watched)
		err = t.still(ctx)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	w.note(broken, in, took, became, text)
	return errors.Join(ctx.Err(), t.remove(ctx))
}

// leaving is a restart whose pod is deleted.
type leaving struct{ *restart }

// gone is what its request comes to.
const gone = `Completed, container Failed, "pod has gone"`

func (l leaving) end(ctx context.Context, _ *trap.Trap) (string, error) {
	return gone, l.ends(ctx, patience, gone)
}

func (l leaving) still(ctx context.Context) error { return l.ends(ctx, time.Second, gone) }
