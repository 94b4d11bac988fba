// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestSlowStart(t *testing.T) {
	tests := map[string]struct {
		limit, size int
		failing     int32
		started     int32
	}{
		"without an error all are done":                  {4, 1, 0, 20},
		"the first is alone":                             {4, 1, 1, 1},
		"the second has one beside it":                   {4, 1, 2, 3},
		"what has worked before begins with more":        {8, 4, 1, 4},
		"at the limit nothing is begun after an error":   {1, 1, 8, 8},
		"what begins at the limit stops there, too":      {1, 1, 1, 1},
		"the last one has kept nothing from being begun": {1, 1, 20, 20},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var started atomic.Int32
			var acts []func() error
			for i := int32(1); i <= 20; i++ {
				acts = append(acts, func() error {
					started.Add(1)
					if i == tc.failing {
						return errors.New("failed")
					}
					return nil
				})
			}
			if err := SlowStart(tc.limit, tc.size, acts); (err != nil) != (tc.failing > 0) || started.Load() != tc.started {
				t.Errorf("%v, %d were started, want %d", err, started.Load(), tc.started)
			}
		})
	}
}

func TestParallelDoesAllWhateverFails(t *testing.T) {
	var mu sync.Mutex
	var done []int
	var acts []func() error
	for i := range 10 {
		acts = append(acts, func() error {
			mu.Lock()
			defer mu.Unlock()
			done = append(done, i)
			return fmt.Errorf("act %d", i)
		})
	}
	err := RunParallel(0, acts) // at least one at a time
	if slices.Sort(done); len(done) != 10 {
		t.Errorf("done are %v", done)
	}
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 10 {
		t.Errorf("the errors are %v", err)
	}
}

func TestNoneKeepsAnotherFromItsTurn(t *testing.T) {
	for name, failing := range map[string][]int{"none fails": nil, "the first": {0}, "some": {0, 3, 19}, "the last": {19}} {
		var mu sync.Mutex
		done := make([]int, 20)
		var acts []func() error
		for i := range done {
			acts = append(acts, func() error {
				mu.Lock()
				defer mu.Unlock()
				done[i]++
				if slices.Contains(failing, i) {
					return fmt.Errorf("act %d", i)
				}
				return nil
			})
		}
		err := SlowStartEach(4, 1, acts)
		if slices.ContainsFunc(done, func(n int) bool { return n != 1 }) || (err != nil) != (len(failing) > 0) {
			t.Errorf("%s: %v; the acts were done so often: %v", name, err, done)
		}
		for _, i := range failing {
			if err != nil && !slices.Contains(strings.Split(err.Error(), "\n"), fmt.Sprint("act ", i)) {
				t.Errorf("%s: %v does not tell of act %d", name, err, i)
			}
		}
	}
}
