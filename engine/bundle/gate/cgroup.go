// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"io/fs"

	"github.com/regatta-sh/regatta/engine/cgroup"
)

// spareMemory is how many bytes of memory a child process leaves to the manager.
const spareMemory = 32 << 20

// MemoryLeft returns how much memory the container of this process has left for a child, in bytes: its limit, less the memory in
// use that cannot be reclaimed. The files are those of /sys/fs/cgroup. limited is false if they have no limit.
func MemoryLeft(files fs.FS) (left uint64, limited bool) {
	limit, used, limited := cgroup.MemoryUse(files)
	if !limited {
		return 0, false
	}
	return limit - min(limit, used+spareMemory), true
}
