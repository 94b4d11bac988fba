// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/nearest"
)

// NearestOf returns what would have changed the answer of a record; nil if the policies that made it
// are not loaded any more, or if no change is found.
func NearestOf(ctx context.Context, e *engine.Engine, r decision.Record) *nearest.Result {
	n, err := nearest.FindConditions(ctx, e, r)
	if err != nil || len(n.Now)+len(n.Almost) == 0 {
		return nil
	}
	return &n
}
