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
	// stopTick is how often a running process notes that it runs.
	stopTick = 100 * time.Millisecond
	// shortestStop is how long a process must note nothing to count as stopped: the delay of a busy process is
	// shorter.
	shortestStop = 400 * time.Millisecond
	// afterStop is how long after a stop the process has begun all requests that arrived meanwhile.
	afterStop = 500 * time.Millisecond
)

// stops records when the process was stopped, such as by a CPU limit or by a signal. A request that arrives meanwhile waits in the kernel,
// and the process cannot know for how long.
type stops struct {
	mu sync.Mutex
	// noted is when the process last noted that it runs.
	noted time.Time
	// last are the stops during which requests may have arrived that have not begun, the oldest first.
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
	if passed <= 0 { // another goroutine has noted a later time
		return
	}
	began := s.noted
	s.noted = now
	stopped := passed >= shortestStop
	if stopped {
		passed = stopTick // it has run for at most that long before; this does not lengthen a chain of stops
	}
	for i := range s.last {
		s.last[i].ran += passed
	}
	s.last = slices.DeleteFunc(s.last, func(p stop) bool { return p.ran > afterStop })
	if stopped {
		s.last = append(s.last, stop{began: began})
	}
}

// waitedAtMost returns how long a request that begins now may have waited for the process at most.
func (s *stops) waitedAtMost(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteRunningLocked(now)
	if len(s.last) == 0 {
		return 0
	}
	return max(now.Sub(s.last[0].began), 0)
}
