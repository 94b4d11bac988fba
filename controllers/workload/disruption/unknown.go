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
	if len(p.Facts.MissingFacts) == 0 || !AreSinglePodsDecided(e, subject) {
		return nil
	}
	missing := p.Facts.MissingFacts[0]
	h := decision.Hold{Rule: decision.RuleEngine, Reason: missing.Reason, Message: missing.Message}.OfPod(p.Namespace, p.Name)
	return &h
}

// AreSinglePodsDecided reports whether rules of users evaluate the pods of a workload one by one.
func AreSinglePodsDecided(e *engine.Engine, subject decision.Subject) bool {
	s, rank := e.ActiveSnapshot(), points.RankPoint().Name
	return s.IsPointExtended(rank, subject) || s.IsPointReplaced(rank, subject) || s.IsPointDefined(points.RowsPoint().Name, subject)
}
