// SPDX-License-Identifier: Apache-2.0

// Package catalog lists the decision points of all domains, for tools that treat every
// point alike: the engine's loader, replay, schemas and the command line.
package catalog

import (
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/injection"
	"github.com/regatta-sh/regatta/engine/decision/launchpriority"
	"github.com/regatta-sh/regatta/engine/decision/node"
	"github.com/regatta-sh/regatta/engine/decision/placement"
	"github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
)

// All lists every decision point there is.
func All() []decision.UntypedPoint {
	return []decision.UntypedPoint{
		rollout.ChangePoint().EraseTypes(),
		rollout.PlanPoint().EraseTypes(),
		rollout.RankPoint().EraseTypes(),
		rollout.RowsPoint().EraseTypes(),
		rollout.ScalePoint().EraseTypes(),
		rollout.PredownloadPoint().EraseTypes(),
		rollout.RunPoint().EraseTypes(),
		protection.BudgetPoint().EraseTypes(),
		protection.DeletionPoint().EraseTypes(),
		protection.GuardsPoint().EraseTypes(),
		injection.SidecarsPoint().EraseTypes(),
		injection.ResourcesPoint().EraseTypes(),
		injection.LivenessPoint().EraseTypes(),
		launchpriority.OrderPoint().EraseTypes(),
		node.RestartsPoint().EraseTypes(),
		node.ImagesPoint().EraseTypes(),
		node.RankPoint().EraseTypes(),
		node.MarkersPoint().EraseTypes(),
		node.TerminationPoint().EraseTypes(),
		placement.DistributionPoint().EraseTypes(),
		placement.BroadcastPoint().EraseTypes(),
		placement.AllocationPoint().EraseTypes(),
		placement.EphemeralPoint().EraseTypes(),
		placement.SubsetPoint().EraseTypes(),
		placement.PersistentPoint().EraseTypes(),
	}
}

// FindPoint is the point of a name.
func FindPoint(name decision.Name) (decision.UntypedPoint, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return decision.UntypedPoint{}, false
}
