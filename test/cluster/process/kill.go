// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// KillAll ends every process of the cluster in dir, those named in first
// before the others, and returns when none is left. It does not ask nicely:
// an API server whose etcd has gone hangs in its shutdown for minutes.
func KillAll(ctx context.Context, dir string, first ...string) error {
	return killUntilGone(ctx, func() ([]int, error) {
		processes, err := Find(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range first {
			for _, running := range processes {
				if running.Name == name {
					_ = syscall.Kill(running.PID, syscall.SIGKILL)
				}
			}
		}
		return pids(processes), nil
	})
}

// Kill ends the processes of dir that match, and returns when they are gone.
func Kill(ctx context.Context, dir string, match func(Running) bool) error {
	return killUntilGone(ctx, func() ([]int, error) {
		processes, err := Find(dir)
		if err != nil {
			return nil, err
		}
		var matching []Running
		for _, running := range processes {
			if match(running) {
				matching = append(matching, running)
			}
		}
		return pids(matching), nil
	})
}

func pids(processes []Running) []int {
	numbers := make([]int, 0, len(processes))
	for _, running := range processes {
		numbers = append(numbers, running.PID)
	}
	return numbers
}

// killUntilGone lists the processes again after every round, because a process may have
// forked between being listed and being killed. One that ends loses its
// environment, by which it is listed, before its sockets: a process that replaces
// it would find its port taken. So it returns when they are dead.
func killUntilGone(ctx context.Context, list func() ([]int, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	killed := map[int]bool{}
	for {
		left, err := list()
		if err != nil {
			return err
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed[pid] = true
		}
		maps.DeleteFunc(killed, func(pid int, _ bool) bool { return dead(pid) })
		if len(left)+len(killed) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for processes %v to die: %w", slices.Sorted(maps.Keys(killed)), ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// dead says whether a process is gone, or was not waited for and has nothing left
// but its number: no thread that still has its files.
func dead(pid int) bool {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	threads, _ := os.ReadDir(filepath.Join(folder, "task"))
	return (strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")) && len(threads) <= 1
}
