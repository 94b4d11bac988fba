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
		{"the last of two stops", []int{100, 3100, 3200, 4200}, 4250, 1050},
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
