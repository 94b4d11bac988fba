// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package gate

import (
	"fmt"
	"runtime/debug"
	"strconv"
)

// limitSelf bounds memory as far as Go can: on a laptop the bundles are one's
// own.
func limitSelf(memory string) error {
	bytes, err := strconv.ParseInt(memory, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the memory limit: %w", err)
	}
	debug.SetMemoryLimit(bytes)
	return nil
}
