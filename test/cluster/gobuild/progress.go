// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// tick is how often a long build says how far it is.
const tick = 15 * time.Second

// A count says how far a build is.
type count struct {
	// compiled of all packages that the cache of Go lacks; all is 0 until it is known.
	compiled, all atomic.Int64
}

// String is "" before the number of packages is known.
func (c *count) String() string {
	compiled, all := c.compiled.Load(), c.all.Load()
	switch {
	case all == 0:
		return ""
	case compiled >= all:
		return ", linking"
	}
	return fmt.Sprintf(", %d of %d packages compiled", compiled, all)
}

// withTicker runs work, and prints label now and then with how far work is and
// the time passed since started. Whole lines rather than a
// spinner, because the output is as often a log file as a terminal.
func withTicker(out io.Writer, label string, started time.Time, work func(*count) error) error {
	var far count
	done := make(chan error, 1)
	go func() { done <- work(&far) }()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			fmt.Fprintf(out, "%s%s, %s so far\n", label, &far, time.Since(started).Round(time.Second))
		}
	}
}
