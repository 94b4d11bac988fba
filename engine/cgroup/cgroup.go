// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads from the control groups of Linux the memory limit and use of the container of this process:
// https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.max, and memory.limit_in_bytes of version 1.
package cgroup

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
)

// files are the paths of one version of control groups, relative to /sys/fs/cgroup as a container sees it.
type files struct{ limit, usage, stat, inactive string }

var versions = []files{
	{"memory.max", "memory.current", "memory.stat", "inactive_file"},
	{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"},
}

// unlimited is above any real limit: version 1 writes the largest number of pages if there is no limit.
const unlimited = 1 << 60

// SystemFiles has the files that the kernel shows this process.
func SystemFiles() fs.FS { return os.DirFS("/sys/fs/cgroup") }

// MemoryLimit returns the limit of the container in bytes, if it has one.
func MemoryLimit(in fs.FS) (limit uint64, limited bool) {
	for _, v := range versions {
		if limit, ok := readNumber(in, v.limit); ok {
			return limit, limit < unlimited
		}
	}
	return 0, false
}

// PartOfMemory returns the limit of the container divided by a number, in bytes; without a limit it returns the number
// unlimited.
func PartOfMemory(in fs.FS, by uint64, unlimited int) int {
	limit, ok := MemoryLimit(in)
	if !ok || limit > math.MaxInt {
		return unlimited
	}
	return int(limit / by)
}

// MemoryUse returns the limit of the container, and the memory in use that cannot be reclaimed, both in bytes. limited is false if
// the files have no limit or no use.
func MemoryUse(in fs.FS) (limit, used uint64, limited bool) {
	for _, v := range versions {
		limit, ok := readNumber(in, v.limit)
		used, known := readNumber(in, v.usage)
		if !ok || !known || limit >= unlimited {
			continue
		}
		used -= min(used, readStat(in, v.stat, v.inactive)) // the kernel reclaims it before it ends a process
		return limit, used, true
	}
	return 0, 0, false
}

// readNumber reads a file with one number; max is none.
func readNumber(in fs.FS, name string) (uint64, bool) {
	text, err := fs.ReadFile(in, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// readStat reads one line of a file of names and numbers; 0 if it has none.
func readStat(in fs.FS, name, field string) uint64 {
	text, err := fs.ReadFile(in, name)
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
