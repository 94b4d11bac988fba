// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/recovery"
)

const (
	// stopTick is how often a process that runs notes that it does.
	stopTick = 100 * time.Millisecond
	// shortestStop is how long it notes nothing where it counts as stopped: a busy process is late by less.
	shortestStop = 400 * time.Millisecond
	// afterStop is how long a process runs after a stop until the requests have begun that came meanwhile.
	afterStop = 500 * time.Millisecond
)

// stops knows when the process was stopped, such as by a CPU limit or by a signal. A request that comes meanwhile waits in the kernel, and
// nothing tells how long it has waited.
type stops struct {
	mu sync.Mutex
	// noted is when the process last noted that it runs.
	noted time.Time
	// last are the stops in which requests may have come that have not begun, the oldest first.
	last []stop
}

// stop is when the process was stopped, and for how long it has run since.
type stop struct {
	began time.Time
	ran   time.Duration
}

// processStops watches this process from the first webhook on.
var processStops = sync.OnceValue(func() *stops {
	s := &stops{noted: time.Now()}
	recovery.GoUntilDone(context.Background(), "webhooks", func(context.Context) {
		for range time.Tick(stopTick) {
			s.noteRunning(time.Now())
		}
	})
	return s
})

// noteRunning notes that the process runs.
func (s *stops) noteRunning(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteRunningLocked(now)
}

func (s *stops) noteRunningLocked(now time.Time) {
	passed := now.Sub(s.noted)
	if passed <= 0 { // another goroutine was first
		return
	}
	began := s.noted
	s.noted = now
	stopped := passed >= shortestStop
	if stopped {
		passed = stopTick // at most for so long it has run before, and no chain of stops is longer for it
	}
	for i := range s.last {
		s.last[i].ran += passed
	}
	s.last = slices.DeleteFunc(s.last, func(p stop) bool { return p.ran > afterStop })
	if stopped {
		s.last = append(s.last, stop{began: began})
	}
}

// waitedAtMost is the longest time that a request which begins now may have waited for the process.
func (s *stops) waitedAtMost(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteRunningLocked(now)
	if len(s.last) == 0 {
		return 0
	}
	return max(now.Sub(s.last[0].began), 0)
}
