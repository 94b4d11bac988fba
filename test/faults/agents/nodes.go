// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/test/faults/daemon"
	"github.com/regatta-sh/regatta/test/faults/trap"
)

// What requests and jobs for a node that is gone come to.
const (
	unheard = `Completed, container Failed, "daemon has not responded for a long time"`
	late    = `Completed, container Failed, "recreating has exceeded the activeDeadlineSeconds"`
)

// nodes takes a node away, with its agent, in the middle of a restart and of a pull, asks for
// more, and brings it back.
func (w *world) nodes(ctx context.Context, d *daemon.Daemon) (err error) {
	var requests []*restart
	for range 4 {
		r := &restart{world: w, name: fmt.Sprintf("restart-%d", w.next()), node: d.Node, seconds: 5, linger: 1}
		if err := r.prepare(ctx); err != nil {
			return err
		}
		requests = append(requests, r)
	}
	amid, short, after, back := requests[0], requests[1], requests[2], requests[3]
	short.deadline = 30
	pulling := &job{world: w, name: fmt.Sprintf("pull-%d", w.next()), node: d.Node, image: fmt.Sprintf("faults-%d:slow-5s", w.next()), timeout: 60, retries: 3}
	limited := &job{world: w, name: fmt.Sprintf("pull-%d", w.next()), node: d.Node, image: fmt.Sprintf("faults-%d:v1", w.next()), timeout: 10, retries: 3, deadline: 15}
	d.Trap.Set(trap.Point{}, nil)
	if err := d.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.End(context.WithoutCancel(ctx))) }()
	for _, t := range []try{amid, short, pulling} {
		if err := t.begin(ctx); err != nil {
			return err
		}
	}
	begun, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := errors.Join(d.Trap.Await(begun, hook, 2), d.Trap.Await(begun, pull, 1)); err != nil {
		return err
	}
	if err := errors.Join(d.Kill(ctx), w.cluster.Kill(ctx, d.Node)); err != nil {
		return err
	}
	lost := time.Now()
	for _, t := range []try{after, limited} {
		if err := t.begin(ctx); err != nil {
			return err
		}
	}
	check := func(in string, since time.Time, became string, err error) {
		text := ""
		if err != nil {
			text = err.Error()
		}
		w.note("node gone for good", in, time.Since(since), became, text)
	}
	became := `"job exceeds activeDeadlineSeconds", 1 failed: ` + d.Node
	check("a pull with a deadline of 15 s", lost, became, limited.ends(ctx, patience, became))
	check("a restart with a deadline of 30 s", lost, late, short.ends(ctx, patience, late))
	check("a restart asked for then", lost, unheard, after.ends(ctx, patience+30*time.Second, unheard))

	if err := w.cluster.Start(d.Node); err != nil {
		return err
	}
	if err := d.Start(); err != nil {
		return err
	}
	returned := time.Now()
	note := func(in, became string, err error) {
		text := ""
		if err != nil {
			text = err.Error()
		}
		w.note("node gone, and back", in, time.Since(returned), became, text)
	}
	err = amid.ends(ctx, patience, restarted)
	if err == nil {
		err = amid.still(ctx)
	}
	note("a restart", restarted+", 1 restart, that of the node", err)
	err = pulling.ends(ctx, patience, pulled)
	if err == nil {
		err = pulling.still(ctx)
	}
	note("a pull", "Succeeded", err)
	if err := until(ctx, patience, back.rebooted); err != nil {
		return err
	}
	returned = time.Now()
	if err := back.begin(ctx); err != nil {
		return err
	}
	note("a restart asked for afterwards", restarted, back.ends(ctx, patience, restarted))
	return nil
}

// rebooted waits for the run that the node began when it was back.
func (r *restart) rebooted(ctx context.Context) (bool, string, error) {
	n, ready, err := r.runs(ctx)
	return n == 1 && ready, fmt.Sprintf("a container of %d restarts, ready %t", n, ready), err
}
