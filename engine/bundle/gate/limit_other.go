// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package gate

import (
	"fmt"
	"runtime/debug"
	"strconv"
	"time"
)

// limitSelf bounds memory as far as Go can. On other systems than Linux users check their own bundles.
func limitSelf(memory string) error {
	bytes, err := strconv.ParseInt(memory, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the memory limit: %w", err)
	}
	debug.SetMemoryLimit(bytes)
	return nil
}

// began is when this process began, or a moment later.
var began = time.Now()

// processorTime is how long this process has run, which is at least its processor time.
func processorTime() time.Duration { return time.Since(began) }
