// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"testing/fstest"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/rank"
)

func TestWhatIsRememberedGrowsWithTheMemoryLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		limit         string
		ranks, rounds int
	}{
		"the chart's": {"536870912", rank.DefaultBytes, explain.RoundBytes},
		"twice that":  {"1073741824", 2 * rank.DefaultBytes, 2 * explain.RoundBytes},
		"none":        {"max", rank.DefaultBytes, explain.RoundBytes},
	} {
		t.Run(name, func(t *testing.T) {
			ranks, rounds := rememberedBytes(fstest.MapFS{"memory.max": {Data: []byte(tc.limit + "\n")}})
			if ranks != tc.ranks || rounds != tc.rounds {
				t.Errorf("%d MiB of places and %d MiB of explanations, want %d and %d", ranks>>20, rounds>>20, tc.ranks>>20, tc.rounds>>20)
			}
		})
	}
}
