// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"time"

	"github.com/regatta-sh/regatta/engine/recovery"
)

const (
	// stopTick is how often a process that runs notes that it does.
	stopTick = 100 * time.Millisecond
	// shortestStop is how long it notes nothing where it counts as stopped: a busy process is late by less.
	shortestStop = 400 * time.Millisecond
	// afterStop is how long after a stop a request begins that may have come meanwhile.
	afterStop = 500 * time.Millisecond
)

// stops knows when the process was stopped, such as by a CPU limit or by a signal. A request that comes meanwhile waits in the kernel, and
// nothing tells how long it has waited.
type stops struct {
	mu sync.Mutex
	// noted is when the process last noted that it runs. began and ended are those of the last stop.
	noted, began, ended time.Time
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
	if now.Sub(s.noted) >= shortestStop {
		s.began, s.ended = s.noted, now
	}
	s.noted = now
}

// waitedAtMost is the longest time that a request which begins now may have waited for the process.
func (s *stops) waitedAtMost(now time.Time) time.Duration {
	s.noteRunning(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.IsZero() || now.Sub(s.ended) > afterStop {
		return 0
	}
	return now.Sub(s.began)
}
