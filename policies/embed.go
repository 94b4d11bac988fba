// Package policies holds the decisions that Regatta makes when nobody else has
// decided: the built-in bundle, one folder for each domain, and examples of how
// users change them.
package policies

import "embed"

// Builtin is the built-in bundle as it is active in every binary. Its paths are
// those of the packages: rollout/plan.rego has data.rollout. Tests are not in it.
//
//go:embed rollout/change.rego rollout/holds.rego rollout/plan.rego rollout/rank.rego rollout/scale.rego
var Builtin embed.FS
