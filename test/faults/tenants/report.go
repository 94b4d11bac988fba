// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"strings"
	"time"
)

// Report is what came out.
type Report struct {
	Options Options
	Parts   []Part
	// Refused are the decisions that policies made, Undecided those that were strict fallbacks, and Unanswered
	// those that no manager answered in time.
	Refused, Undecided, Unanswered int64
	// Limit is the memory limit of the container of a manager, in bytes.
	Limit    int64
	Restarts int
}

// Part is one thing that was done.
type Part struct {
	What string
	Took time.Duration
	// Peak is the largest working set of a manager meanwhile, in bytes.
	Peak int64
}

// Err is nil if everything was as promised.
func (r *Report) Err() error {
	switch {
	case r.Restarts > 0:
		return fmt.Errorf("managers ended %d times", r.Restarts)
	case r.Refused == 0:
		return fmt.Errorf("nothing was tried: none of %d decisions was made by policies", r.Undecided+r.Unanswered)
	}
	return nil
}

func (r *Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d namespaces with a PolicyBundle each, memory limit %d MiB\n\n", r.Options.Namespaces, r.Limit>>20)
	fmt.Fprintf(&out, "%-45s  %8s  %s\n", "", "took", "largest working set of a manager")
	for _, part := range r.Parts {
		fmt.Fprintf(&out, "%-45s  %8s  %d MiB\n", part.What, part.Took.Round(time.Second), part.Peak>>20)
	}
	fmt.Fprintf(&out, "\ndecisions: %d by policies, %d strict fallbacks, %d without an answer in time\nrestarts of managers: %d\n", r.Refused, r.Undecided, r.Unanswered, r.Restarts)
	return out.String()
}
