// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"time"

	"github.com/regatta-sh/regatta/engine/decision"
)

// RankInput asks for the place of each of some nodes that wait to pull an image. Nodes are
// independent of one another, and there is no time and no count here, so that each answer
// may be remembered.
type RankInput struct {
	// Job is what was asked for.
	Job Job `json:"job"`
	// Nodes are those whose place is asked for, by name.
	Nodes []NodeFacts `json:"nodes"`
}

// NodeFacts are the facts of one node that its place depends on.
type NodeFacts struct {
	// Name of the node.
	Name string `json:"name"`
	// Zone of the node.
	Zone string `json:"zone,omitempty"`
	// Region of the node.
	Region string `json:"region,omitempty"`
	// Labels of the node; there are none if it has none.
	Labels map[string]string `json:"labels,omitempty"`
}

// RankOutput gives each node its place, by position in RankInput.Nodes.
type RankOutput struct {
	// Keys are compared element by element; the lower goes first. Equal ones go by name.
	Keys [][]float64 `json:"keys"`
	// Holds stop single nodes for now; each names its node.
	Holds []Hold `json:"holds"`
	// Denials are of nodes that do not pull for this job. They have failed.
	Denials []Denial `json:"denials"`
}

// RankPoint decides the order of nodes. The manager asks it for the nodes of an
// ImagePullJob that wait and whose facts changed, a thousand at a time at most; answers
// about the others are remembered. Without an answer nodes go by name (IMG-03); where a
// rule of users takes part, each is held.
func RankPoint() decision.Point[RankInput, RankOutput] {
	return decision.Point[RankInput, RankOutput]{
		Name: "node/rank", Budget: time.Second, MaxResult: 200_000, MaxBytes: 2 << 20,
		Fallback: byName,
		StrictFallback: func(in RankInput) RankOutput {
			out := byName(in)
			for _, n := range in.Nodes {
				out.Holds = append(out.Holds, Hold{
					Rule: decision.RuleEngine, Reason: decision.ReasonNoDecision, Node: n.Name,
					Message: "The policies that may hold this node did not answer, so it is held until they do.",
				})
			}
			return out
		},
		Check: checkRank,
		Lean: func(_ RankInput, then, now RankOutput) decision.Strictness {
			return decision.CombineStrictness(decision.StrictnessOf(!coversHolds(then.Holds, now.Holds), !coversHolds(now.Holds, then.Holds)),
				decision.FewerIsStricter(-len(then.Denials), -len(now.Denials)))
		},
	}
}

// byName is the order without any policy.
func byName(in RankInput) RankOutput {
	out := RankOutput{Keys: make([][]float64, len(in.Nodes))}
	for i := range out.Keys {
		out.Keys[i] = []float64{}
	}
	return out
}

func checkRank(in RankInput, out RankOutput) error {
	if len(out.Keys) != len(in.Nodes) {
		return fmt.Errorf("keys has %d entries for %d nodes", len(out.Keys), len(in.Nodes))
	}
	for i, k := range out.Keys {
		if len(k) != len(out.Keys[0]) {
			return fmt.Errorf("keys[%d] has %d elements, keys[0] has %d", i, len(k), len(out.Keys[0]))
		}
	}
	return checkTold(out.Holds, out.Denials)
}
