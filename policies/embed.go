// SPDX-License-Identifier: Apache-2.0

// Package policies holds the decisions that Regatta makes where no bundle of a user
// decides: the built-in bundle, one folder for each domain, and examples of how
// users change them.
package policies

import (
	"embed"

	// Policies ask what time it is in a time zone, and a container image may
	// have none.
	_ "time/tzdata"
)

//go:generate go run ./examples/gen examples

// Builtin is the built-in bundle as it is active in every binary. Its paths are
// those of the packages: rollout/plan.rego has data.rollout. Tests are not in it.
//
//go:embed injection/liveness.rego injection/resources.rego injection/sidecars.rego injection/users.rego launchpriority/order.rego
//go:embed lib/wishes.rego placement/allocation.rego placement/broadcast.rego placement/distribution.rego placement/ephemeral.rego placement/persistent.rego placement/subset.rego placement/users.rego
//go:embed node/images.rego node/markers.rego node/rank.rego node/restarts.rego node/termination.rego node/users.rego
//go:embed protection/budget.rego protection/deletion.rego protection/guards.rego protection/invalid.rego protection/users.rego
//go:embed rollout/change.rego rollout/holds.rego rollout/plan.rego rollout/predownload.rego rollout/rank.rego rollout/run.rego rollout/scale.rego
var Builtin embed.FS

// Cases are the cases of the built-in policies: inputs of each point that make sense, for tools that vary them.
//
//go:embed cases/*/*.yaml
var Cases embed.FS

// Examples are what users may start from: a folder each, with the policy, its
// tests, a README.md and a bundle.yaml for kubectl.
//
// Some have data, at the path where their package finds it, and all have cases.
//
//go:embed examples/*/*.rego examples/*/*.md examples/*/*.yaml examples/*/cases/*.yaml examples/*/extend/*/*/*.yaml
var Examples embed.FS
