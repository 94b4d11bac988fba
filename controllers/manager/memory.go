// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"io/fs"
	"math"

	"github.com/regatta-sh/regatta/engine/cgroup"
	"github.com/regatta-sh/regatta/engine/rank"
)

// rankPart is the part of the container's memory that the places of pods may take. With the chart's limit of 512 MiB it is the
// default, and it grows with the limit as the cache of pods does.
const rankPart = 32

// rememberedBytes is how many bytes the places of the pods of all workloads may take.
func rememberedBytes(files fs.FS) (ranks int) {
	limit, ok := cgroup.MemoryLimit(files)
	if !ok || limit > math.MaxInt {
		return rank.DefaultBytes
	}
	return int(limit / rankPart)
}
