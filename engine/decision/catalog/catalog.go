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
func All() []decision.Any {
	return []decision.Any{
		rollout.ChangePoint().Any(),
		rollout.PlanPoint().Any(),
		rollout.RankPoint().Any(),
		rollout.RowsPoint().Any(),
		rollout.ScalePoint().Any(),
		rollout.PredownloadPoint().Any(),
		rollout.RunPoint().Any(),
		protection.BudgetPoint().Any(),
		protection.DeletionPoint().Any(),
		protection.GuardsPoint().Any(),
		injection.SidecarsPoint().Any(),
		injection.ResourcesPoint().Any(),
		injection.LivenessPoint().Any(),
		launchpriority.OrderPoint().Any(),
		node.RestartsPoint().Any(),
		node.ImagesPoint().Any(),
		node.RankPoint().Any(),
		node.MarkersPoint().Any(),
		node.TerminationPoint().Any(),
		placement.DistributionPoint().Any(),
		placement.BroadcastPoint().Any(),
		placement.AllocationPoint().Any(),
		placement.EphemeralPoint().Any(),
		placement.SubsetPoint().Any(),
		placement.PersistentPoint().Any(),
	}
}

// Find is the point of a name.
func Find(name decision.Name) (decision.Any, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return decision.Any{}, false
}
