// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"fmt"
	"io"
	"time"
)

// tick is how often a long build says that it is still alive.
const tick = 15 * time.Second

// withTicker tells label, runs work, and repeats label with the time passed
// since started until the work is done. Whole lines rather than a spinner,
// because the output is as often a log file as a terminal.
func withTicker(out io.Writer, label string, started time.Time, work func() error) error {
	fmt.Fprintf(out, "%s, %s so far\n", label, elapsed(started))
	done := make(chan error, 1)
	go func() { done <- work() }()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			fmt.Fprintf(out, "%s, %s so far\n", label, elapsed(started))
		}
	}
}

func elapsed(started time.Time) time.Duration {
	return time.Since(started).Round(time.Second)
}
