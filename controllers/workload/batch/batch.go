// SPDX-License-Identifier: Apache-2.0

// Package batch does many requests to the API server, with a limit for those at the same time.
package batch

import (
	"sync/atomic"

	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// RunParallel does all acts, at most limit at once, and joins their errors; the text of the error names the first ones. A panic of an act
// becomes its error.
func RunParallel(limit int, acts []func() error) error {
	errs := make([]error, len(acts))
	g := recovery.NewGroup("batch", max(limit, 1))
	for i, act := range acts {
		g.Go(func() error { errs[i] = recovery.Call("batch", act); return nil })
	}
	_ = g.Wait() // errs has the error of each act
	return message.JoinErrors(errs...)
}

// SlowStart does acts in batches of size, of twice that and so on, and from limit on as
// RunParallel does. It begins no more acts after one has failed.
func SlowStart(limit, size int, acts []func() error) error {
	for ; size < limit && len(acts) > 0; size *= 2 {
		n := min(size, len(acts))
		if err := RunParallel(limit, acts[:n]); err != nil {
			return err
		}
		acts = acts[n:]
	}
	var failed atomic.Bool
	careful := make([]func() error, len(acts))
	for i, act := range acts {
		careful[i] = func() error {
			if failed.Load() {
				return nil
			}
			err := act()
			if err != nil {
				failed.Store(true)
			}
			return err
		}
	}
	return RunParallel(limit, careful)
}

// SlowStartEach does acts as SlowStart does, but starts slowly again after an act that fails, until all have begun. It is for acts
// that must not prevent each other.
func SlowStartEach(limit, size int, acts []func() error) error {
	var errs []error
	for len(acts) > 0 {
		begun, noted := make([]bool, len(acts)), make([]func() error, len(acts))
		for i, act := range acts {
			noted[i] = func() error {
				begun[i] = true
				return act()
			}
		}
		if err := SlowStart(limit, size, noted); err != nil {
			errs = append(errs, err)
		}
		var left []func() error
		for i, act := range acts {
			if !begun[i] {
				left = append(left, act)
			}
		}
		acts = left
	}
	return message.JoinErrors(errs...)
}
