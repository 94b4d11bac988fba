// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"os"
	"strings"
	"testing"
)

// holdHistories names the property that holds each kind's writes to holds, over histories in which holds come and go.
var holdHistories = []struct {
	kind, file, test string
}{
	{"CloneSet", "cloneset/life_test.go", "TestAnyLifeOfACloneSet"},
	{"Advanced StatefulSet", "statefulset/life_test.go", "TestAnyLifeOfAStatefulSet"},
	{"Advanced DaemonSet", "daemonset/life_test.go", "TestAnyLifeOfADaemonSet"},
	{"UnitedDeployment, with native children", "uniteddeployment/life_test.go", "TestAnyLifeOfAUnitedDeployment"},
	{"SidecarSet", "sidecarset/life_test.go", "TestAnyLifeOfASidecarSet"},
	{"WorkloadSpread", "workloadspread/life_test.go", "TestAnyLifeOfAWorkloadSpread"},
}

// TestEachKindIsHeldToItsHolds holds that the test of each kind is there, that each property draws holds by the rules that all share,
// and that make simulate looks for more histories of it.
func TestEachKindIsHeldToItsHolds(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range holdHistories {
		text, err := os.ReadFile("../controllers/" + of.file)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(text), "func "+of.test+"(t *testing.T)") {
			t.Errorf("%s: %s has no %s", of.kind, of.file, of.test)
		}
		dir, _, _ := strings.Cut(of.file, "/")
		if !strings.Contains(string(text), "simulation.HoldRules") || !strings.Contains(string(makefile), "./controllers/"+dir) {
			t.Errorf("%s: %s draws no holds, or make simulate leaves it out", of.kind, of.test)
		}
	}
}
