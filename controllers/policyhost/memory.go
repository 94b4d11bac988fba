// SPDX-License-Identifier: Apache-2.0

package policyhost

import (
	"io/fs"
	"math"
	"os"
	"runtime/debug"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/cgroup"
)

// Bounds of the memory that one decision may add to the heap, in bytes.
const (
	leastDecision = 64 << 20
	mostDecision  = 512 << 20
)

// decisionMemory is how much memory one decision may use: half of what the container has besides the
// reserved memory, so that a policy that allocates too much is stopped before the kernel ends the
// process.
func decisionMemory(files fs.FS, reserved uint64) uint64 {
	limit, ok := cgroup.MemoryLimit(files)
	if !ok {
		return mostDecision
	}
	if limit < reserved {
		return leastDecision
	}
	return min(max((limit-reserved)/2, leastDecision), mostDecision)
}

// Parts of the container's memory that the policies of namespaces may take: their bundles, and the compiled ones. With
// the chart's limit of 512 MiB they give the defaults of the engine.
const (
	tenantPart = 8
	viewPart   = 16
)

// policyMemory returns how many bytes the bundles of namespaces may take, and how many the compiled ones.
func policyMemory(files fs.FS) (tenants, views int) {
	return cgroup.PartOfMemory(files, tenantPart, engine.DefaultTenantBytes), cgroup.PartOfMemory(files, viewPart, engine.DefaultViewBytes)
}

// LimitHeap makes the garbage collector keep this process below nine tenths of the memory limit of its container, as the
// files of /sys/fs/cgroup have it, unless the variable GOMEMLIMIT is set. It returns the limit in bytes; 0 if it set
// none. Without a limit the garbage of a burst may take as much memory as the live heap, and the kernel may end the
// process.
func LimitHeap(files fs.FS) int64 {
	limit, ok := cgroup.MemoryLimit(files)
	if _, set := os.LookupEnv("GOMEMLIMIT"); set || !ok || limit > math.MaxInt64 {
		return 0
	}
	bytes := int64(limit / 10 * 9)
	debug.SetMemoryLimit(bytes)
	return bytes
}
