// SPDX-License-Identifier: Apache-2.0

// Package heap measures for tests what a cache keeps.
package heap

import "runtime"

// collections is how many times the garbage collector runs: the first leaves what finalizers hold, and pools keep their buffers for two.
const collections = 3

// CountLiveBytes collects the garbage of this process, and returns how many bytes its heap has after that. Tests that measure must not run
// in parallel with others.
func CountLiveBytes() int {
	for range collections {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
