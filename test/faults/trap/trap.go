// SPDX-License-Identifier: Apache-2.0

// Package trap stands between a node agent and the two that it talks to, the container
// runtime and the API server, and has it killed at one of its calls.
package trap

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Moment is when an agent is killed, as a call sees it.
type Moment string

// Moments. Before it the call never arrives, and after it the answer is lost.
const (
	Before Moment = "before"
	During Moment = "in"
	After  Moment = "after"
)

// begun is how long a call has been under way when an agent is killed in it.
const begun = 300 * time.Millisecond

// Point is one call of an agent, and when it is killed there.
type Point struct {
	// Call is a method of CRI such as StopContainer, or a write such as PATCH pods.
	Call string
	// Nth counts the calls of that name, from 1.
	Nth    int
	Moment Moment
}

func (p Point) String() string {
	if p.Call == "" {
		return "nothing"
	}
	return fmt.Sprintf("%s %s, call %d", p.Moment, p.Call, p.Nth)
}

// Trap counts the calls of one agent, and springs at one of them, once.
type Trap struct {
	mu     sync.Mutex
	point  Point
	spring func()
	sprung chan struct{}
	calls  []string
	counts map[string]int // of all calls
	passed map[string]int // of those that arrived
}

// New makes a Trap that only counts.
func New() *Trap {
	t := &Trap{}
	t.Set(Point{}, nil)
	return t
}

// Set counts from the beginning, and has spring called at a point: it kills the agent, and
// returns when that is dead. The zero Point is never reached.
func (t *Trap) Set(p Point, spring func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.point, t.spring, t.calls, t.counts, t.passed, t.sprung = p, spring, nil, map[string]int{}, map[string]int{}, make(chan struct{})
}

// Calls are the calls so far, in their order.
func (t *Trap) Calls() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.calls...)
}

// Count is how often a call was made.
func (t *Trap) Count(call string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[call]
}

// Passed is how often a call arrived.
func (t *Trap) Passed(call string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.passed[call]
}

// Sprung is closed when the agent has been killed.
func (t *Trap) Sprung() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sprung
}

// Await waits until a call was made for the nth time.
func (t *Trap) Await(ctx context.Context, call string, nth int) error {
	for t.Count(call) < nth {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for call %d of %s: %w", nth, call, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// around makes a call. lost says that its answer is for an agent that is dead.
func (t *Trap) around(call string, do func()) (lost bool) {
	t.mu.Lock()
	t.calls = append(t.calls, call)
	t.counts[call]++
	at, spring, sprung := t.point, t.spring, t.sprung
	hit := at.Call == call && at.Nth == t.counts[call]
	if !hit || at.Moment != Before {
		t.passed[call]++
	}
	t.mu.Unlock()
	if !hit {
		do()
		return false
	}
	kill := func() {
		spring()
		close(sprung)
	}
	switch at.Moment {
	case Before:
		kill()
	case After:
		do()
		kill()
	case During:
		var killed sync.WaitGroup
		killed.Go(func() {
			time.Sleep(begun)
			kill()
		})
		do()
		killed.Wait()
	}
	return true
}
