// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"testing/fstest"

	"github.com/regatta-sh/regatta/engine/rank"
)

func TestWhatIsRememberedGrowsWithTheMemoryLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		limit string
		ranks int
	}{
		"the chart's": {"536870912", rank.DefaultBytes},
		"twice that":  {"1073741824", 2 * rank.DefaultBytes},
		"none":        {"max", rank.DefaultBytes},
	} {
		t.Run(name, func(t *testing.T) {
			ranks := rememberedBytes(fstest.MapFS{"memory.max": {Data: []byte(tc.limit + "\n")}})
			if ranks != tc.ranks {
				t.Errorf("%d MiB of places, want %d", ranks>>20, tc.ranks>>20)
			}
		})
	}
}
