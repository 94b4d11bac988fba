// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"io/fs"

	"github.com/regatta-sh/regatta/engine/cgroup"
)

// spareMemory is what a child leaves to the manager beside it, in bytes.
const spareMemory = 32 << 20

// MemoryLeft returns how much memory the container of this process has left for a child, in bytes: its limit, less what is in use
// and cannot be given back. The files are those of /sys/fs/cgroup. It is not limited where they say nothing of a limit.
func MemoryLeft(files fs.FS) (left uint64, limited bool) {
	limit, used, limited := cgroup.MemoryUse(files)
	if !limited {
		return 0, false
	}
	return limit - min(limit, used+spareMemory), true
}
