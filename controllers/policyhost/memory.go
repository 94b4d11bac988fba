// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"io/fs"
	"strconv"
	"strings"
)

// Bounds of what one decision may add to the heap, in bytes.
const (
	leastDecision = 64 << 20
	mostDecision  = 512 << 20
)

// decisionMemory is what one decision may use: half of what the container has
// beside what is reserved, so that a policy that explodes is given up before the
// kernel ends the process.
func decisionMemory(root fs.FS, reserved uint64) uint64 {
	limit, ok := containerMemory(root)
	if !ok {
		return mostDecision
	}
	if limit < reserved {
		return leastDecision
	}
	return min(max((limit-reserved)/2, leastDecision), mostDecision)
}

// containerMemory is the limit in bytes of the container that this process is in,
// if it has one: https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.max,
// and memory.limit_in_bytes of version 1.
func containerMemory(root fs.FS) (uint64, bool) {
	for _, file := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		// "max" is no limit, and so is the number that version 1 has for it.
		n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		return n, err == nil && n < 1<<60
	}
	return 0, false
}
