// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bufio"
	"bytes"
	"io/fs"
	"strconv"
	"strings"
)

// spareMemory is what a child leaves to the manager beside it, in bytes.
const spareMemory = 32 << 20

// cgroupFiles are the files of one version of control groups, relative to /sys/fs/cgroup as a container sees it.
type cgroupFiles struct{ limit, usage, stat, inactive string }

var cgroupVersions = []cgroupFiles{
	{"memory.max", "memory.current", "memory.stat", "inactive_file"},
	{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"},
}

// unlimited is above any limit that a container has: version 1 writes the largest number of pages for none.
const unlimited = 1 << 60

// MemoryLeft returns how much memory the container of this process has left for a child, in bytes: its limit, less what is in use
// and cannot be given back. The files are those of /sys/fs/cgroup. It is not limited where they say nothing of a limit.
func MemoryLeft(files fs.FS) (left uint64, limited bool) {
	for _, v := range cgroupVersions {
		limit, ok := readNumber(files, v.limit)
		used, known := readNumber(files, v.usage)
		if !ok || !known || limit >= unlimited {
			continue
		}
		used -= min(used, readStat(files, v.stat, v.inactive)) // the kernel takes it back before it ends a process
		return limit - min(limit, used+spareMemory), true
	}
	return 0, false
}

// readNumber reads a file with one number; max is none.
func readNumber(files fs.FS, name string) (uint64, bool) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// readStat reads one line of a file of names and numbers; 0 if it has none.
func readStat(files fs.FS, name, field string) uint64 {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), field+" "); ok {
			n, _ := strconv.ParseUint(rest, 10, 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}
