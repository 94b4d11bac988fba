// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// BusySeconds is what all processors together have worked since the start.
func BusySeconds() (float64, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal
	if len(fields) < 8 {
		return 0, fmt.Errorf("reading the CPU time of the machine: /proc/stat begins with %q", line)
	}
	return seconds(append(append([]string{}, fields[1:4]...), fields[6:8]...))
}

// Load is the load average of the last minute.
func Load() (float64, error) {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("reading the load: %w", err)
	}
	first, _, _ := strings.Cut(string(raw), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the load: %w", err)
	}
	return load, nil
}

// MemoryBytes is how much the machine has.
func MemoryBytes() (int64, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the machine: %w", err)
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading the memory of the machine: /proc/meminfo is empty")
	}
	kib, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the machine: %w", err)
	}
	return kib * 1024, nil
}
