// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/audit"
	"github.com/regatta-sh/regatta/test/perf/target"
)

// What a program writes as it starts, such as an object for each node, is no part of
// what is measured.
const (
	quiet     = 3 * time.Second
	calmLimit = 5 * time.Minute
)

// calm waits until the program that is measured has written nothing for a while but
// that it leads.
func calm(ctx context.Context, t *target.Target) error {
	if t.AuditLog == "" {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, calmLimit)
	defer cancel()
	started := time.Now()
	for {
		counts, err := audit.Counts(t.AuditLog, audit.Filter{User: t.Subject.User, Since: time.Now().Add(-quiet)})
		if err != nil {
			return err
		}
		counts = slices.DeleteFunc(counts, func(c audit.Count) bool { return c.Resource == "leases" })
		if len(counts) == 0 && time.Since(started) > quiet {
			return nil
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("waiting for %s to be quiet, which last wrote %+v: %w", t.Subject.User, counts, limited.Err())
		case <-time.After(quiet / 3):
		}
	}
}
