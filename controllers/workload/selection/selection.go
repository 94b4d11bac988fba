// SPDX-License-Identifier: Apache-2.0

// Package selection walks the candidates of a rollout in the order of a policy
// and takes as many as the plan and the clamp allow.
package selection

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// Candidate is a pod that could be moved, in the order of the policy.
type Candidate struct {
	Pod       types.NamespacedName // candidates of a cluster-scoped workload may have the same name
	Available bool
	Groups    map[string]string
	Hold      *decision.Hold // the hold of this pod alone
}

// Limits bound one round. They are the lower of the limits in the plan and the limits
// that the differences computed in Go allow. ClampPlan computes them.
type Limits struct {
	Limit          int // pods to move
	MaxUnavailable int // pods that may be unavailable
	// Unavailable is how candidates that are unavailable already are handled, as in
	// rollout.PlanOutput.
	Unavailable string
}

// ClampPlan clamps a plan to its input: whatever it answers, never more pods
// than the difference are moved, and never more may be unavailable than in the input.
func ClampPlan(in rollout.PlanInput, out rollout.PlanOutput) Limits {
	wanted := in.Update
	if wanted < 0 {
		wanted = -wanted
	}
	return Limits{
		Limit:          min(max(out.Limit, 0), wanted),
		MaxUnavailable: min(out.MaxUnavailable, in.MaxUnavailable),
		Unavailable:    out.Unavailable,
	}
}

// Unavailable counts the pods that are not available before the walk.
type Unavailable struct {
	Total    int // at all revisions
	AtTarget int // at the revision that pods are moved to
}

// CountUse returns the room that a candidate uses up when it is taken.
func (l Limits) CountUse(c Candidate) (room Unavailable) {
	if c.Available {
		room.Total++
	}
	if c.Available || l.Unavailable != rollout.UnavailableAlways {
		room.AtTarget++
	}
	return room
}

// Skip is a candidate that was not taken, with the hold that is the reason.
type Skip struct {
	Pod  types.NamespacedName
	Hold decision.Hold
}

// Reasons of holds by the walk, not by a policy.
const (
	ReasonLimit          = "PartitionReached"
	ReasonMaxUnavailable = "MaxUnavailableReached"
)

// WalkCandidates takes candidates in order (CS-10). It skips held candidates, which
// use up nothing. The walk stops where as many pods are unavailable at the target revision
// as are allowed. An available candidate also needs room among all unavailable pods;
// one that is unavailable already does not. With lim.Unavailable set, unavailable candidates come first, or
// are taken whatever room there is.
func WalkCandidates(cands []Candidate, holds []decision.Hold, lim Limits, un Unavailable) (taken []types.NamespacedName, skipped []Skip) {
	stop := func(from int, reason, message string) ([]types.NamespacedName, []Skip) {
		for _, c := range cands[from:] {
			hold := holdOf(c, holds)
			if hold == nil {
				hold = &decision.Hold{Rule: decision.RuleWalk, Reason: reason, Message: message}
			}
			skipped = append(skipped, Skip{c.Pod, *hold})
		}
		return taken, skipped
	}
	if lim.Unavailable != "" {
		cands = unavailableFirst(cands, holds, lim.Limit)
	}
	for i, c := range cands {
		if hold := holdOf(c, holds); hold != nil {
			skipped = append(skipped, Skip{c.Pod, *hold})
			continue
		}
		if len(taken) >= lim.Limit {
			return stop(i, ReasonLimit, "The partition keeps this pod at its revision, or others are moved first.")
		}
		room := lim.CountUse(c)
		if room.AtTarget > 0 && un.AtTarget >= lim.MaxUnavailable || room.Total > 0 && un.Total >= lim.MaxUnavailable {
			return stop(i, ReasonMaxUnavailable, "As many pods are unavailable as maxUnavailable allows; this one waits for them.")
		}
		un.Total, un.AtTarget = un.Total+room.Total, un.AtTarget+room.AtTarget
		taken = append(taken, c.Pod)
	}
	return taken, skipped
}

// unavailableFirst puts candidates that are unavailable already first, among as many as may be
// moved. The others keep their order, so that the same pods are moved in the end.
func unavailableFirst(cands []Candidate, holds []decision.Hold, limit int) []Candidate {
	var held, first, then, rest []Candidate
	for _, c := range cands {
		switch {
		case holdOf(c, holds) != nil:
			held = append(held, c)
		case len(first)+len(then) >= limit:
			rest = append(rest, c)
		case c.Available:
			then = append(then, c)
		default:
			first = append(first, c)
		}
	}
	return slices.Concat(held, first, then, rest)
}

func holdOf(c Candidate, holds []decision.Hold) *decision.Hold {
	for i := range holds {
		if h := &holds[i]; h.NamesPod(c.Pod.Namespace, c.Pod.Name) && groupsMatch(h.Where, c.Groups) {
			return &holds[i]
		}
	}
	return c.Hold
}

func groupsMatch(where, groups map[string]string) bool {
	for k, v := range where {
		if groups[k] != v {
			return false
		}
	}
	return true
}
