// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"time"
)

// A Goal is what a workload is to reach.
type Goal struct {
	// Pods is how many there are to be; fewer available ones are missing.
	Pods int
	// First is the first sign of progress.
	First    func(*View) bool
	Complete func(*View) bool
}

// A Result is when a workload reached its goal, from the start of the race.
type Result struct {
	First, Complete time.Duration
	// Missing is how many pods were not available at most, and in the mean
	// from the first sign of progress until the goal was reached.
	MostMissing int
	MeanMissing float64
}

// A Race takes the times of any number of workloads.
type Race struct {
	started time.Time
	lanes   map[string]*lane
	running int
	done    chan struct{}
}

type lane struct {
	goal   Goal
	result Result
	area   float64 // of missing pods over seconds
	last   time.Time
	miss   int
	over   bool
}

// Start begins a race: whatever has workloads reach their goals comes after it.
func (w *Watcher) Start(goals map[string]Goal) *Race {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &Race{started: time.Now(), lanes: map[string]*lane{}, running: len(goals), done: make(chan struct{})}
	for name, goal := range goals {
		r.lanes[name] = &lane{goal: goal, last: r.started, miss: max(goal.Pods-w.view(name).Available, 0)}
	}
	w.race = r
	return r
}

// Started is when the race began.
func (r *Race) Started() time.Time { return r.started }

func (r *Race) look(name string, v *View, now time.Time) {
	l := r.lanes[name]
	if l == nil || l.over {
		return
	}
	at := now.Sub(r.started)
	if l.result.First == 0 && l.goal.First(v) {
		l.result.First, l.last = at, now
	}
	if l.result.First > 0 {
		l.area += float64(l.miss) * now.Sub(l.last).Seconds()
		l.result.MostMissing = max(l.result.MostMissing, l.goal.Pods-v.Available)
	}
	l.miss, l.last = max(l.goal.Pods-v.Available, 0), now
	if !l.goal.Complete(v) {
		return
	}
	if l.result.First == 0 {
		l.result.First = at
	}
	l.result.Complete, l.over = at, true
	if span := (l.result.Complete - l.result.First).Seconds(); span > 0 {
		l.result.MeanMissing = l.area / span
	}
	if r.running--; r.running == 0 {
		close(r.done)
	}
}

// Wait waits until all have reached their goals and returns their results.
func (r *Race) Wait(ctx context.Context, w *Watcher) (map[string]Result, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for %s: %w", w.behind(r), ctx.Err())
	}
	results := map[string]Result{}
	for name, l := range r.lanes {
		results[name] = l.result
	}
	return results, nil
}

// behind describes a workload that has not reached its goal, for an error.
func (w *Watcher) behind(r *Race) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, l := range r.lanes {
		if v := w.view(name); !l.over {
			return fmt.Sprintf("%d of %d workloads, such as %s with %d pods, %d of them available (%v), and %d terminating",
				r.running, len(r.lanes), name, v.Pods, v.Available, v.Images, v.Terminating)
		}
	}
	return "nothing"
}
