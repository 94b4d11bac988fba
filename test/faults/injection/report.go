// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"strings"
	"time"
)

// Report is what came out.
type Report struct {
	options                 Options
	took                    time.Duration
	kills, changes, retries int
	made                    int
	// named are the pods that name a ControllerRevision that there still was in the end, and that has what they have.
	named int
	summary
}

// Err is nil if everything was as promised.
func (r *Report) Err() error {
	switch {
	case len(r.violations) > 0:
		return fmt.Errorf("%d violations, such as:\n%s", len(r.violations), strings.Join(r.violations[:min(len(r.violations), 10)], "\n"))
	case r.pods != r.made:
		return fmt.Errorf("%d pods were made, and %d were seen", r.made, r.pods)
	case r.injections < r.pods || r.changes == 0 || r.first == 0 || r.first == r.injections || r.later == 0:
		return fmt.Errorf("nothing was tried: %d injections of which %d named a revision, %d changes of SidecarSets, %d changes of pods", r.injections, r.first, r.changes, r.later)
	case r.kills == 0 && r.options.KillEvery > 0:
		return fmt.Errorf("no manager was killed within %s", r.took)
	}
	return nil
}

func (r *Report) String() string {
	o := r.options
	var out strings.Builder
	fmt.Fprintf(&out, "%d pods by %d clients in %s (%.0f a second), %d replicas killed %d times, %d SidecarSets changed %d times\n",
		r.made, o.Clients, r.took.Round(time.Second), float64(r.made)/r.took.Seconds(), o.Replicas, r.kills, o.Groups*int(forms), r.changes)
	fmt.Fprintf(&out, "requests that no manager answered, and that were sent again: %d\n", r.retries)
	fmt.Fprintf(&out, "checked: %d injections of %d versions of SidecarSets, %d of them of the revision that half of the pods get; %d later versions of pods\n",
		r.injections, r.sets, r.first, r.later)
	fmt.Fprintf(&out, "injections that name a ControllerRevision that was there in the end, with what they have: %d\n", r.named)
	fmt.Fprintf(&out, "injections of a version that had been replaced before the request was sent: %d, at most %s before\n", r.behind, r.oldest.Round(time.Millisecond))
	fmt.Fprintf(&out, "violations: %d\n", len(r.violations))
	return out.String()
}
