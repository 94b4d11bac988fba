// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// HoldOfMissingFact returns the hold of a pod some fact of which is missing. A rule that reads the fact could hold the pod.
// It returns nil if no fact is missing, or if no rule of users could hold the pod.
func HoldOfMissingFact(e *engine.Engine, subject decision.Subject, p *facts.Pod) *decision.Hold {
	if len(p.Facts.MissingFacts) == 0 || !mayHoldSinglePods(e, subject) {
		return nil
	}
	missing := p.Facts.MissingFacts[0]
	h := decision.Hold{Rule: decision.RuleEngine, Reason: missing.Reason, Message: missing.Message}.OfPod(p.Namespace, p.Name)
	return &h
}

// MayReadNodes reports whether rules of users see the pods of a workload, and with them the nodes: a change of a node may change what
// they say.
func MayReadNodes(e *engine.Engine, subject decision.Subject) bool {
	s, scale := e.ActiveSnapshot(), points.ScalePoint().Name
	return mayHoldSinglePods(e, subject) || s.IsPointExtended(scale, subject) || s.IsPointReplaced(scale, subject)
}

// mayHoldSinglePods reports whether rules of users take part in decisions that may hold a pod of a workload and not another one.
func mayHoldSinglePods(e *engine.Engine, subject decision.Subject) bool {
	s, rank := e.ActiveSnapshot(), points.RankPoint().Name
	return s.IsPointExtended(rank, subject) || s.IsPointReplaced(rank, subject) || s.IsPointDefined(points.RowsPoint().Name, subject)
}
