// SPDX-License-Identifier: Apache-2.0

package local

import (
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/test/cluster/state"
)

// A cluster that runs is used again for each way to write its version.
func TestWhichClusterIsUsedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		has  state.State
		asks Options
		want string
	}{
		"nothing said":                         {state.State{Real: 3, Kubernetes: "1.30", CSI: true}, Options{}, ""},
		"the newest, by its number":            {state.State{Simulated: 3}, Options{Kubernetes: "1.36"}, ""},
		"the newest, which was named":          {state.State{Simulated: 3, Kubernetes: "1.36"}, Options{Kubernetes: "1.36", Simulated: 3}, ""},
		"an older one":                         {state.State{Simulated: 3}, Options{Kubernetes: "1.30"}, "runs Kubernetes 1.36, not 1.30"},
		"the newest, where an older one runs":  {state.State{Simulated: 3, Kubernetes: "1.30"}, Options{Kubernetes: "1.36"}, "runs Kubernetes 1.30, not 1.36"},
		"other nodes":                          {state.State{Simulated: 3}, Options{Simulated: 4}, "0 real and 3 simulated nodes, not 0 and 4"},
		"a CSI driver, which it does not have": {state.State{Real: 3}, Options{Real: 3, CSI: true}, "without a CSI driver"},
	} {
		err := test.asks.withDefaults().checkReuse(&test.has)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
