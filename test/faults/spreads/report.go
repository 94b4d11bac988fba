// SPDX-License-Identifier: Apache-2.0

package spreads

import (
	"fmt"
	"strings"
	"time"
)

// Report is what came out.
type Report struct {
	load                      Load
	took, settled             time.Duration
	created, deleted, retries int
	kills                     int
	summary
}

// Err is nil if everything was as promised.
func (r *Report) Err() error {
	switch {
	case len(r.violations) > 0:
		return fmt.Errorf("%d violations, such as:\n%s", len(r.violations), strings.Join(r.violations[:min(len(r.violations), 10)], "\n"))
	case r.full == 0 || r.created < r.load.Pods || r.pods < r.created:
		return fmt.Errorf("nothing was tried: %d creates and %d versions of pods, and subsets were full %d times", r.created, r.pods, r.full)
	case r.statuses >= r.created+r.deleted:
		return fmt.Errorf("the status was written %d times for %d creates and %d deletes at once", r.statuses, r.created, r.deleted)
	case r.load.Kill != nil && r.kills == 0:
		return fmt.Errorf("no manager was killed within %s", r.took)
	}
	return nil
}

func (r *Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d creates and %d deletes by %d clients at a time in %d rounds and %s", r.created, r.deleted, r.load.Pods, r.load.Rounds, r.took.Round(time.Second))
	if r.load.Kill != nil {
		fmt.Fprintf(&out, ", managers killed %d times", r.kills)
	}
	fmt.Fprintf(&out, "\nrequests that no manager answered, and that were sent again: %d; pods that were let in without a subset: %d\n", r.retries, r.unspread)
	fmt.Fprintf(&out, "checked: %d versions of pods in the order they were stored; subsets came to their limit %d times; %d writes of the spread\n", r.pods, r.full, r.statuses)
	fmt.Fprintf(&out, "the status counted the pods that there are %s after the last request\n", r.settled.Round(100*time.Millisecond))
	fmt.Fprintf(&out, "violations: %d\n", len(r.violations))
	return out.String()
}
