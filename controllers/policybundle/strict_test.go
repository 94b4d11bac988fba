// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"slices"
	"testing"
)

func TestPointsThatWereNotedAreNotTakenBack(t *testing.T) {
	for name, tc := range map[string]struct{ noted, now, want []string }{
		"none are known yet":      {},
		"they are not known now":  {noted: []string{"node/restart"}, want: []string{"node/restart"}},
		"there are more":          {noted: []string{"node/restart"}, now: []string{"rollout/plan", "node/restart"}, want: []string{"node/restart", "rollout/plan"}},
		"there are fewer":         {noted: []string{"node/restart", "rollout/plan"}, now: []string{"node/restart"}, want: []string{"node/restart", "rollout/plan"}},
		"they are noted at first": {now: []string{"rollout/plan"}, want: []string{"rollout/plan"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := joinPoints(tc.noted, tc.now); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
