// SPDX-License-Identifier: Apache-2.0

// Package procfs reads what processes and the machine have used from /proc.
package procfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ticks a second is what the kernel counts in wherever Linux runs today.
const ticks = 100

// CPUSeconds is what a process has used since it began, without its children.
func CPUSeconds(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	// The name, in brackets, may contain anything; the state follows it.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading the CPU time of process %d: its stat has %d fields", pid, len(fields))
	}
	return seconds(fields[11:13])
}

// ResidentBytes is the memory of a process that is in RAM.
func ResidentBytes(pid int) (int64, error) { return memory(pid, "VmRSS:") }

// PeakBytes is the most that it ever was.
func PeakBytes(pid int) (int64, error) { return memory(pid, "VmHWM:") }

func memory(pid int, field string) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
			}
			return kib * 1024, nil
		}
	}
	return 0, fmt.Errorf("reading the memory of process %d: it has ended", pid)
}

// Named finds the processes that run a program of this name, in containers too.
func Named(program string) ([]int, error) {
	return find(func(dir string) bool {
		exe, err := os.Readlink(filepath.Join(dir, "exe"))
		return err == nil && filepath.Base(exe) == program
	})
}

// InPod finds the processes of a pod that run a program of this name.
func InPod(program, uid string) ([]int, error) {
	return find(func(dir string) bool {
		exe, err := os.Readlink(filepath.Join(dir, "exe"))
		if err != nil || filepath.Base(exe) != program {
			return false
		}
		groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		text := string(groups) // systemd's names of control groups have no dashes
		return err == nil && (strings.Contains(text, uid) || strings.Contains(text, strings.ReplaceAll(uid, "-", "_")))
	})
}

func find(match func(dir string) bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && match(filepath.Join("/proc", entry.Name())) {
			found = append(found, pid)
		}
	}
	slices.Sort(found)
	return found, nil
}

// Arguments are those that a process was started with.
func Arguments(pid int) ([]string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, fmt.Errorf("reading the arguments of process %d: %w", pid, err)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00"), nil
}

// Gone says whether err is that a process has ended.
func Gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func seconds(fields []string) (float64, error) {
	sum := 0.0
	for _, f := range fields {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading a CPU time: %w", err)
		}
		sum += float64(n) / ticks
	}
	return sum, nil
}
