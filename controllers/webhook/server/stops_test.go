// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

func TestHowLongARequestMayHaveWaited(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	for _, tc := range []struct {
		name  string
		ticks []int
		begin int
		want  int
	}{
		{"a process that runs", []int{100, 200, 300}, 350, 0},
		{"a process that is busy", []int{100, 450, 800}, 1000, 0},
		{"a request that is the first to notice the stop", []int{100}, 3100, 3000},
		{"a request right behind the stop", []int{100, 3100, 3200}, 3300, 3200},
		{"a request long after the stop", []int{100, 3100, 3200, 3300, 3400, 3500, 3600}, 3700, 0},
		{"the last of two stops", []int{100, 3100, 3200, 3300, 3400, 3500, 3600, 3700, 4700}, 4750, 1050},
		{"a request that came in the first of two stops, and had no time to begin in between", []int{100, 3100, 3200, 4200}, 4250, 4150},
		{"a stop of which the process has run too long since, in parts", []int{100, 3100, 3400, 4400, 4650}, 4700, 1300},
		{"a process that hardly runs between many stops", []int{100, 3100, 3101, 6101, 6102, 9102, 9103, 12103}, 12104, 12004},
	} {
		s := &stops{noted: start}
		for _, ms := range tc.ticks {
			s.noteRunning(at(ms))
		}
		if got := s.waitedAtMost(at(tc.begin)); got != time.Duration(tc.want)*time.Millisecond {
			t.Errorf("%s: %s, want %d ms", tc.name, got, tc.want)
		}
	}
}

// However often the process is stopped, few stops are remembered, and no request counts as one of the first.
func TestStopsAreForgotten(t *testing.T) {
	now := time.Now()
	s := &stops{noted: now}
	for range 100 {
		now = now.Add(shortestStop)
		s.noteRunning(now)
	}
	if most := int(afterStop/stopTick) + 1; len(s.last) > most || s.waitedAtMost(now) > time.Duration(most)*shortestStop {
		t.Errorf("%d stops are remembered, and a request may have waited for %s", len(s.last), s.waitedAtMost(now))
	}
}
