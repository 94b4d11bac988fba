package process

import (
	"context"
	"fmt"
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

// killUntilGone looks again after every round, because a process may have
// forked between being listed and being killed.
func killUntilGone(ctx context.Context, list func() ([]int, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		left, err := list()
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for processes %v to die: %w", left, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
