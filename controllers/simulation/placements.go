// SPDX-License-Identifier: Apache-2.0

package simulation

// Annotations of a UnitedDeployment or a WorkloadSpread that set the answers of PlacementRules.
const (
	// HoldPlacement holds the placement: All, or the name of one subset.
	HoldPlacement = "holds.test/placement"
	// DenyPlacement is a subset that gets no pods.
	DenyPlacement = "holds.test/placement-deny"
	// FailPlacement is All if a rule of the placement fails.
	FailPlacement = "holds.test/placement-failing"
)

// PlacementRules is a module for use with HoldRules. It answers points of placement by annotations.
const PlacementRules = `package extend.placement.drawn

import future.keywords.not

asked := input.deployment.annotations

asked := input.spread.annotations

hold contains {"rule": "drawn.placement", "reason": "Placement", "message": "placement is held"} if {
	asked["holds.test/placement"] == "All"
}

hold contains {"rule": "drawn.subset", "reason": "Placement", "message": "a subset is held", "target": asked["holds.test/placement"]} if {
	not asked["holds.test/placement"] == "All"
}

hold contains {"rule": "drawn.fails", "reason": "Fails", "message": "m"} if to_number(asked["holds.test/placement-failing"]) > 1

deny contains {"rule": "drawn.denied", "reason": "Denied", "message": "a subset is denied", "target": asked["holds.test/placement-deny"]}
`

// HoldsPlacement reports whether no subset may get, or lose, a pod by a decision.
func (h ActiveHolds) HoldsPlacement() bool {
	return h[HoldPlacement] == "All" || h[FailPlacement] != ""
}

// HoldsSubset reports whether a subset may get, or lose, no pod by a decision.
func (h ActiveHolds) HoldsSubset(name string) bool {
	return h.HoldsPlacement() || h[HoldPlacement] != "" && h[HoldPlacement] == name
}

// DeniesSubset reports whether a subset may get no more pods by a decision.
func (h ActiveHolds) DeniesSubset(name string) bool {
	return h.HoldsSubset(name) || h[DenyPlacement] != "" && h[DenyPlacement] == name
}
