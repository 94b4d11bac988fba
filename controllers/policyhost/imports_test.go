// SPDX-License-Identifier: Apache-2.0

package policyhost_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A Host is for processes of any kind: it depends on the API types and on how
// bundles are kept, and on no controller and no webhook.
func TestAHostDependsOnNoController(t *testing.T) {
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const controllers = "github.com/regatta-sh/regatta/controllers/"
	may := []string{"policyhost", "policybundle/bundlerevision", "recovery", "workload/requeue"}
	found := 0
	for _, dep := range strings.Fields(string(deps)) {
		ours, ok := strings.CutPrefix(dep, controllers)
		if !ok {
			continue
		}
		found++
		if !slices.Contains(may, ours) && !strings.HasPrefix(ours, "api/") {
			t.Errorf("it depends on %s", dep)
		}
	}
	if found < 3 {
		t.Errorf("go list found %d of our packages", found)
	}
}
