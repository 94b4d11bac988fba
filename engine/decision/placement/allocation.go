// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// Strategies of a UnitedDeployment.
const (
	// Fixed: subsets have numbers of their own, or share what is left evenly (UD-02).
	Fixed = "Fixed"
	// Limits: subsets are filled in their order, between least and most (UD-03).
	Limits = "Limits"
	// Adaptive: as Limits, but a subset without room gets no more than it has (UD-04).
	Adaptive = "Adaptive"
	// Reserve: pods that find no room stay, and others stand in for them (UD-05).
	Reserve = "Reserve"
)

// AllocationInput asks how many pods each subset of a UnitedDeployment gets (UD-02 to
// UD-05).
type AllocationInput struct {
	// Now is in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Deployment is the UnitedDeployment.
	Deployment UnitedDeployment `json:"deployment"`
	// Replicas is how many pods all subsets are to have together; left out if each subset
	// has a number of its own.
	Replicas *int `json:"replicas,omitempty"`
	// Strategy is Fixed, Limits, Adaptive or Reserve.
	Strategy string `json:"strategy"`
	// Subsets in the order of the spec.
	Subsets []Subset `json:"subsets"`
}

// UnitedDeployment is what is known of one.
type UnitedDeployment struct {
	// Name of the UnitedDeployment.
	Name string `json:"name"`
	// Namespace of the UnitedDeployment and its pods.
	Namespace string `json:"namespace"`
	// Created is in nanoseconds since 1970.
	Created int64 `json:"created"`
	// Labels of the UnitedDeployment; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the UnitedDeployment, but for what kubectl apply notes there.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Subset is one of a UnitedDeployment. Percentages are numbers already.
type Subset struct {
	// Name of the subset.
	Name string `json:"name"`
	// Nodes are the values that it requires of labels of its nodes, such as
	// {"topology.kubernetes.io/zone": ["b"]}.
	Nodes map[string][]string `json:"nodes,omitempty"`
	// Given is spec.replicas of the subset; left out if it has none.
	Given *int `json:"given,omitempty"`
	// Min is minReplicas, 0 if it has none.
	Min int `json:"min"`
	// Max is maxReplicas; left out if it has none.
	Max *int `json:"max,omitempty"`
	// Exists is true when the subset has a workload.
	Exists bool `json:"exists,omitempty"`
	// Current is how many pods its workload is to have now.
	Current int `json:"current"`
	// Ready is how many of its pods are ready.
	Ready int `json:"ready"`
	// Placed is how many of its pods are on a node. It is counted for Adaptive only.
	Placed int `json:"placed"`
	// Reserved is how many of its pods others stand in for.
	Reserved int `json:"reserved"`
	// Unschedulable is true while pods of the subset find no node.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// Marked is true while its condition Schedulable is False.
	Marked bool `json:"marked,omitempty"`
}

// AllocationOutput says how many pods each subset gets. The clamp in Go keeps each subset
// within its numbers and the sum at the replicas, whatever it says.
type AllocationOutput struct {
	// Subsets are the counts.
	Subsets []Share `json:"subsets"`
	// Holds leave subsets as they are for now. None means go.
	Holds []Hold `json:"holds"`
	// Denials are of subsets that get no pods, or no more than there is room for.
	Denials []Denial `json:"denials"`
}

// Share is what a subset gets.
type Share struct {
	// Name of the subset.
	Name string `json:"name"`
	// Replicas is how many pods it gets.
	Replicas int `json:"replicas"`
	// Rule is the id of the rule that says so.
	Rule string `json:"rule,omitempty"`
}

// AllocationPoint decides how many pods each subset of a UnitedDeployment gets. The
// controller asks it when the object or one of its workloads changes, when a subset may have
// room again, and at the time that a hold names. Without an answer every subset stays as it
// is, and none is created or deleted.
func AllocationPoint() decision.Point[AllocationInput, AllocationOutput] {
	return decision.Point[AllocationInput, AllocationOutput]{
		Name: "placement/allocation", Budget: 500 * time.Millisecond, MaxResult: 100_000,
		Fallback: func(AllocationInput) AllocationOutput {
			return AllocationOutput{Holds: []Hold{{
				Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision,
				Message: "No policy could decide how many pods each subset gets, so all stay as they are.",
			}}}
		},
		Check: checkAllocation,
		Lean: func(in AllocationInput, then, now AllocationOutput) decision.Strictness {
			return decision.FewerIsStricter(then.countMoves(in), now.countMoves(in))
		},
	}
}

func checkAllocation(in AllocationInput, out AllocationOutput) error {
	seen := map[string]bool{}
	for _, s := range out.Subsets {
		if !slices.ContainsFunc(in.Subsets, func(o Subset) bool { return o.Name == s.Name }) {
			return fmt.Errorf("subsets names %q, which the UnitedDeployment does not have", s.Name)
		}
		if seen[s.Name] {
			return fmt.Errorf("subsets names %q twice", s.Name)
		}
		seen[s.Name] = true
		if s.Replicas < 0 || s.Replicas > math.MaxInt32 {
			return fmt.Errorf("subset %q has %d replicas, want 0 to %d", s.Name, s.Replicas, math.MaxInt32)
		}
	}
	for i, h := range out.Holds {
		if h.Reason == "" || h.Message == "" {
			return fmt.Errorf("holds[%d] of rule %s has no reason or no message", i, h.Rule)
		}
	}
	for i, d := range out.Denials {
		if d.Reason == "" || d.Message == "" {
			return fmt.Errorf("denials[%d] of rule %s has no reason or no message", i, d.Rule)
		}
		if d.Room != nil && *d.Room < 0 {
			return fmt.Errorf("denials[%d] of rule %s has room for %d, want 0 or more", i, d.Rule, *d.Room)
		}
	}
	if len(out.Holds) == 0 {
		for _, s := range in.Subsets {
			if !seen[s.Name] {
				return fmt.Errorf("subsets does not name %q", s.Name)
			}
		}
	}
	return nil
}

// GlobalHold is the hold that leaves all subsets as they are, nil if there is none.
func (o AllocationOutput) GlobalHold() *Hold {
	var first *Hold
	for i := range o.Holds {
		if h := &o.Holds[i]; h.Target == "" && (first == nil || slices.Compare(holdSortKey(h), holdSortKey(first)) < 0) {
			first = h
		}
	}
	return first
}

// HeldAt is the hold of one subset, or of all; nil if there is none.
func (o AllocationOutput) HeldAt(subset string) *Hold {
	if h := o.GlobalHold(); h != nil {
		return h
	}
	var first *Hold
	for i := range o.Holds {
		if h := &o.Holds[i]; h.Target == subset && (first == nil || slices.Compare(holdSortKey(h), holdSortKey(first)) < 0) {
			first = h
		}
	}
	return first
}

// DeniedAt is the denial that leaves a subset the least room, nil if there is none.
func (o AllocationOutput) DeniedAt(subset string) *Denial {
	var least *Denial
	for i := range o.Denials {
		d := &o.Denials[i]
		if (d.Target == "" || d.Target == subset) && (least == nil || d.allowedRoom() < least.allowedRoom()) {
			least = d
		}
	}
	return least
}

// clamped are the counts as they are cut and filled.
type clamped struct {
	in    AllocationInput
	held  []bool
	most  []int
	count []int
}

// PermittedReplicas is how many pods each subset gets, in the order of the subsets: the clamp. A subset
// that is held keeps what it has, each stays within its numbers, and the sum is that of the
// replicas as far as these allow it. Pods that are cut are those of the last subsets, and
// pods that are missing go to the first.
func (o AllocationOutput) PermittedReplicas(in AllocationInput) []int {
	c := clamped{in: in, held: make([]bool, len(in.Subsets)), most: make([]int, len(in.Subsets)), count: make([]int, len(in.Subsets))}
	said := make(map[string]int, len(o.Subsets))
	for _, s := range o.Subsets {
		said[s.Name] = s.Replicas
	}
	for i, s := range in.Subsets {
		c.held[i] = o.HeldAt(s.Name) != nil
		c.most[i] = s.maxReplicas(in.Strategy)
		if d := o.DeniedAt(s.Name); d != nil {
			c.most[i] = min(c.most[i], d.allowedRoom())
		}
		c.count[i] = min(said[s.Name], c.most[i])
		if c.held[i] {
			c.count[i] = s.Current
		}
	}
	if o.GlobalHold() != nil || in.Replicas == nil {
		return c.count
	}
	c.raiseToMinimum()
	c.cutExcess()
	c.fillMissing()
	return c.count
}

// maxReplicas is how many pods a subset may have.
func (s Subset) maxReplicas(strategy string) int {
	switch {
	case strategy == Fixed && s.Given != nil:
		return *s.Given
	case strategy != Fixed && s.Max != nil:
		return *s.Max
	}
	return math.MaxInt32
}

// minReplicas is how many pods a subset is to have if there are enough.
func (s Subset) minReplicas(strategy string) int {
	if strategy != Fixed {
		return s.Min
	}
	if s.Given != nil {
		return *s.Given
	}
	return 0
}

// ReplicaQuota is how many pods of a subset count as replicas; others stand in for the rest (UD-05).
func (s Subset) ReplicaQuota(strategy string) int {
	if strategy != Reserve || !s.Exists || !s.Unschedulable && !s.Marked {
		return math.MaxInt32
	}
	return max(s.Current-s.Reserved, 0)
}

// countReplicas is how many of the replicas there are.
func (c *clamped) countReplicas() (sum int) {
	for i, s := range c.in.Subsets {
		sum += min(c.count[i], s.ReplicaQuota(c.in.Strategy))
	}
	return sum
}

// raiseToMinimum gives each subset its least, if there are replicas for all of them.
func (c *clamped) raiseToMinimum() {
	least := 0
	for _, s := range c.in.Subsets {
		least += s.minReplicas(c.in.Strategy)
	}
	if least > *c.in.Replicas {
		return
	}
	for i, s := range c.in.Subsets {
		if !c.held[i] {
			c.count[i] = max(c.count[i], min(s.minReplicas(c.in.Strategy), c.most[i]))
		}
	}
}

// cutExcess takes what is too much from the last subsets: first what is above their least.
func (c *clamped) cutExcess() {
	for _, keep := range []bool{true, false} {
		for i := len(c.count) - 1; i >= 0; i-- {
			over := c.countReplicas() - *c.in.Replicas
			if over <= 0 {
				return
			}
			least, counts := 0, min(c.count[i], c.in.Subsets[i].ReplicaQuota(c.in.Strategy))
			if keep {
				least = c.in.Subsets[i].minReplicas(c.in.Strategy)
			}
			if counts > least && !c.held[i] {
				c.count[i] = max(counts-over, least)
			}
		}
	}
}

// fillMissing gives what is missing to the first subsets that may have more.
func (c *clamped) fillMissing() {
	for i, s := range c.in.Subsets {
		missing := *c.in.Replicas - c.countReplicas()
		if missing <= 0 {
			return
		}
		if !c.held[i] && s.ReplicaQuota(c.in.Strategy) == math.MaxInt32 {
			c.count[i] = max(c.count[i], min(c.most[i], c.count[i]+missing))
		}
	}
}

// countMoves is how many pods an answer creates and deletes.
func (o AllocationOutput) countMoves(in AllocationInput) (n int) {
	for i, count := range o.PermittedReplicas(in) {
		n += max(count-in.Subsets[i].Current, in.Subsets[i].Current-count)
	}
	return n
}

// RequeueTimes are the times at which its holds may change by the passing of time alone.
func (o AllocationOutput) RequeueTimes() []string { return requeueTimes(o.Holds) }
