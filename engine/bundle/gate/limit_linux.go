// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// cpuSeconds is the limit of processor time that ends a child whose parent is gone.
const cpuSeconds = 120

// limitSelf bounds the memory and processor time of this process. The soft limit makes the garbage
// collector work harder before the hard one ends the process.
func limitSelf(memory string) error {
	bytes, err := strconv.ParseUint(memory, 10, 62)
	if err != nil {
		return fmt.Errorf("reading the memory limit: %w", err)
	}
	// If the container has too little memory after all, the kernel ends this process and not its parent. A process may raise its own
	// score without a permission; an error is ignored.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	debug.SetMemoryLimit(int64(bytes / 10 * 9))
	debug.SetGCPercent(400) // the process ends soon, and has one processor
	for resource, limit := range map[int]uint64{syscall.RLIMIT_DATA: bytes, syscall.RLIMIT_CPU: cpuSeconds, syscall.RLIMIT_CORE: 0} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limiting this process: %w", err)
		}
	}
	return nil
}

// processorTime is how long this process has had a processor.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0 // it only fails for invalid arguments
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
