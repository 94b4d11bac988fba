// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"os"
	"strings"
	"testing"
)

// holdHistories names the test that holds each kind's writes to holds. A property draws histories in which holds come and go; where
// there is none yet, single tests hold the writes that the table of disruptions names.
var holdHistories = []struct {
	kind, file, test string
	property         bool
}{
	{"CloneSet", "cloneset/life_test.go", "TestAnyLifeOfACloneSet", true},
	{"Advanced StatefulSet", "statefulset/life_test.go", "TestAnyLifeOfAStatefulSet", true},
	{"Advanced DaemonSet", "daemonset/life_test.go", "TestAnyLifeOfADaemonSet", true},
	{"UnitedDeployment, with native children", "uniteddeployment/life_test.go", "TestAnyLifeOfAUnitedDeployment", true},
	{"SidecarSet", "sidecarset/missed_test.go", "TestEvictionsOfPodsThatLackTheirSidecarsAreHeld", false},
	{"WorkloadSpread", "workloadspread/holds_test.go", "TestPodsThatFindNoNodeAreHeld", false},
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
		if of.property && (!strings.Contains(string(text), "simulation.HoldRules") || !strings.Contains(string(makefile), "./controllers/"+dir)) {
			t.Errorf("%s: %s draws no holds, or make simulate leaves it out", of.kind, of.test)
		}
	}
}
