// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"slices"
	"strings"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/engine/decision/placement"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// ruleHold is a hold as far as it matters here.
type ruleHold struct{ rule, until string }

// holdsFor returns what holds, and the time of the round that asked, for a point whose answer is about the whole subject and is asked for again
// as long as something is to be done: what one answer holds is held until the next one. It is not ok for other points: the next answer is about
// another pod or request, or about another run of a schedule.
func holdsFor(r decision.Record) (holds []ruleHold, at time.Time, ok bool) {
	var now int64
	switch in := r.Input.(type) {
	case rollout.PlanInput:
		now = in.Now
	case rollout.ScaleInput:
		now = in.Now
	case placement.AllocationInput:
		now = in.Now
	case placement.BroadcastInput:
		now = in.Now
	case placement.EphemeralInput:
		now = in.Now
	case placement.DistributionInput:
		now = in.Now
	case node.ImagesInput:
		now = in.Now
	}
	switch out := r.Output.(type) {
	case rollout.PlanOutput:
		holds = convertHolds(out.Holds, fromDecision)
	case rollout.ScaleOutput:
		holds = convertHolds(out.Holds, fromDecision)
	case placement.DistributionOutput:
		holds = convertHolds(out.Holds, fromDecision)
	case placement.AllocationOutput:
		holds = convertHolds(out.Holds, fromPlacement)
	case placement.BroadcastOutput:
		holds = convertHolds(out.Holds, fromPlacement)
	case placement.EphemeralOutput:
		holds = convertHolds(out.Holds, fromPlacement)
	case node.ImagesOutput:
		holds = convertHolds(out.Holds, func(h node.Hold) ruleHold { return ruleHold{h.Rule, h.Until} })
	default:
		return nil, at, false
	}
	if at = r.Time; now > 0 {
		at = time.Unix(0, now)
	}
	return holds, at, true
}

func convertHolds[H any](holds []H, convert func(H) ruleHold) (out []ruleHold) {
	for _, h := range holds {
		out = append(out, convert(h))
	}
	return out
}

func fromDecision(h decision.Hold) ruleHold { return ruleHold{h.Rule, h.Until} }

func fromPlacement(h placement.Hold) ruleHold { return ruleHold{h.Rule, h.Until} }

// isDenial reports whether a decision refuses a request: a deletion, an eviction, or the creation of a pod.
func isDenial(point decision.Name, word string) bool {
	domain, _, _ := strings.Cut(string(point), "/")
	return slices.Contains([]string{"protection", "injection", "launchpriority"}, domain) && (word == "Deny" || word == "Refuse")
}
