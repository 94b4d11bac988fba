// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/test/faults/daemon"
	"github.com/regatta-sh/regatta/test/faults/trap"
)

// kind is what an agent does while it is killed.
type kind interface {
	name() string
	// inside are the calls that take long enough to be killed in their middle.
	inside() []string
	// prepare makes what a try is done with, while no agent runs.
	prepare(ctx context.Context, w *world, node string) (try, error)
}

// try is one thing that an agent is to do.
type try interface {
	// begin asks for it.
	begin(ctx context.Context) error
	// end waits until it is done, and says what became of it. An error is a violation.
	end(ctx context.Context, t *trap.Trap) (string, error)
	// still checks later that nothing was done again.
	still(ctx context.Context) error
	// remove removes all that there is of it.
	remove(ctx context.Context) error
}

const (
	// patience is how long a try may take, whatever is killed.
	patience = 90 * time.Second
	// mostOfPoll is how many calls that only read are killed at: an agent repeats these all the time.
	mostOfPoll = 2
	// watched is how long an agent runs on after it is done.
	watched = 1500 * time.Millisecond
)

// kills does a thing once in peace, and then once for each call that it took, with the agent
// killed there. The nodes share the work.
func (w *world) kills(ctx context.Context, k kind, agents []*daemon.Daemon) error {
	for _, d := range agents {
		if err := quiet(ctx, d); err != nil {
			return err
		}
	}
	calls, err := w.rehearse(ctx, k, agents[0])
	if err != nil {
		return err
	}
	points := pointsOf(calls, k.inside())
	w.report.Points += len(points)
	w.say("%s takes these calls: %q; the agent is killed at %d points", k.name(), calls, len(points))
	for _, p := range points {
		w.expect(brokenAt(p), k.name())
	}
	work := make(chan trap.Point)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	wrong := make([]error, len(agents))
	for i, d := range agents {
		all.Go(func() {
			if wrong[i] = w.work(ctx, k, d, work); wrong[i] != nil {
				cancel() // the others
			}
		})
	}
feed:
	for _, p := range points {
		select {
		case work <- p:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	all.Wait()
	return errors.Join(wrong...)
}

// quiet lets an agent do what is left for it of before.
func quiet(ctx context.Context, d *daemon.Daemon) error {
	d.Trap.Set(trap.Point{}, nil)
	if err := d.Start(); err != nil {
		return err
	}
	calls := 0
	err := until(ctx, patience, func(ctx context.Context) (bool, string, error) {
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
		before := calls
		calls = len(d.Trap.Calls())
		return calls > 0 && calls == before, "an agent that has more to do: " + fmt.Sprint(d.Trap.Calls()), nil
	})
	return errors.Join(err, d.End(context.WithoutCancel(ctx)))
}

// rehearse is a try in peace, and the calls that it took.
func (w *world) rehearse(ctx context.Context, k kind, d *daemon.Daemon) ([]string, error) {
	t, err := k.prepare(ctx, w, d.Node)
	if err != nil {
		return nil, err
	}
	became, took, err := w.one(ctx, t, d, trap.Point{})
	if err != nil {
		return nil, fmt.Errorf("in peace: %w", err)
	}
	w.note("nothing", k.name(), took, became, "")
	return d.Trap.Calls(), t.remove(ctx)
}

// pointsOf are where an agent is killed, in the order of its calls.
func pointsOf(calls, inside []string) []trap.Point {
	var out []trap.Point
	counts := map[string]int{}
	for _, call := range calls {
		counts[call]++
		if counts[call] > mostOfPoll && !slices.Contains(inside, call) && call[0] != 'P' { // PATCH, POST
			continue
		}
		out = append(out, trap.Point{Call: call, Nth: counts[call], Moment: trap.Before})
		if slices.Contains(inside, call) {
			out = append(out, trap.Point{Call: call, Nth: counts[call], Moment: trap.During})
		}
		out = append(out, trap.Point{Call: call, Nth: counts[call], Moment: trap.After})
	}
	return out
}

// work tries points on one node, and looks at all again when there are no more.
func (w *world) work(ctx context.Context, k kind, d *daemon.Daemon, points <-chan trap.Point) error {
	type done struct {
		try
		broken string
	}
	var all []done
	for p := range points {
		t, err := k.prepare(ctx, w, d.Node)
		if err != nil {
			return err
		}
		broken := brokenAt(p)
		became, took, err := w.one(ctx, t, d, p)
		var wrong violationError
		if err != nil && !errors.As(err, &wrong) {
			return err
		}
		text := ""
		if err != nil {
			text = fmt.Sprintf("%s on %s: %v", p, d.Node, err)
			w.say("VIOLATION in %s: %s", k.name(), text)
		}
		w.note(broken, k.name(), took, became, text)
		all = append(all, done{t, broken})
	}
	for _, t := range all {
		if err := t.still(ctx); err != nil {
			w.blame(t.broken, k.name(), "later: "+err.Error())
		}
		if err := t.remove(ctx); err != nil {
			return err
		}
	}
	return nil
}

// brokenAt is what breaks at a point, for the table.
func brokenAt(p trap.Point) string { return "agent killed at " + p.Call }

// violationError is of a promise that was broken, where others are of the trial itself.
type violationError struct{ err error }

func (e violationError) Error() string { return e.err.Error() }
func (e violationError) Unwrap() error { return e.err }

// one is a try with an agent that starts for it, and starts again when it was killed.
func (w *world) one(ctx context.Context, t try, d *daemon.Daemon, p trap.Point) (became string, took time.Duration, err error) {
	var killing error
	d.Trap.Set(p, func() { killing = d.Kill(context.WithoutCancel(ctx)) })
	if err := t.begin(ctx); err != nil {
		return "", 0, err
	}
	start := time.Now()
	if err := d.Start(); err != nil {
		return "", 0, err
	}
	sprung := d.Trap.Sprung()
	over, cancel := context.WithCancel(ctx)
	again := make(chan error, 1)
	go func() {
		select {
		case <-sprung:
			again <- errors.Join(killing, d.Start())
		case <-over.Done():
			again <- nil
		}
	}()
	became, err = t.end(ctx, d.Trap)
	took = time.Since(start)
	if err == nil {
		select { // what an agent would do once too often it does now
		case <-ctx.Done():
		case <-time.After(watched):
		}
		err = t.still(ctx)
	}
	if err != nil && ctx.Err() == nil {
		err = violationError{err}
	}
	cancel()
	starting := <-again
	reached := p.Call == ""
	select {
	case <-sprung:
		reached = true
	default:
	}
	if !reached {
		became += " (the agent made no such call)"
	}
	return became, took, errors.Join(err, starting, d.End(context.WithoutCancel(ctx)))
}
