// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/regatta-sh/regatta/test/perf/procfs"
)

// ThisMachine describes the machine that the program runs on.
func ThisMachine() (Machine, error) {
	m := Machine{CPUs: runtime.NumCPU(), Model: model()}
	var err error
	if m.MemoryBytes, err = procfs.MemoryBytes(); err != nil {
		return m, err
	}
	if m.LoadBefore, err = procfs.Load(); err != nil {
		return m, err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil { // it only adds to the picture
		m.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return m, nil
}

func model() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
