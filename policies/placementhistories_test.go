// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"os"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/engine/decision/catalog"
)

// placementHistories says of each point of placement which history draws holds, denials and failures of it, or why none does, and
// which test holds its answers.
var placementHistories = []struct {
	point, file, test string
	// notDrawn is why no history draws it; empty where one does.
	notDrawn string
}{
	{point: "placement/allocation", file: "uniteddeployment/life_test.go", test: "TestAnyLifeOfAUnitedDeployment"},
	{point: "placement/subset", file: "workloadspread/life_test.go", test: "TestAnyLifeOfAWorkloadSpread"},
	{point: "placement/persistent", file: "webhook/pod/persistence/persistence_test.go", test: "TestPodsThatComeBack",
		notDrawn: "it is asked while a pod is created, whatever it answers, and says on which nodes the pod may run: it holds no write, and neither " +
			"moves, deletes nor evicts a pod. Without an answer the pod asks for all that is remembered, which is the strictest there is"},
	{point: "placement/broadcast", file: "broadcastjob/controller_test.go", test: "TestAHoldOfANodeAndARank",
		notDrawn: "a BroadcastJob has no revisions, updates no pod, and has no history of that kind: it creates one pod on each node, which a hold keeps it from"},
	{point: "placement/ephemeral", file: "ephemeraljob/controller_test.go", test: "TestTheController",
		notDrawn: "an EphemeralJob adds containers to pods, of which Kubernetes takes none away: no history goes back from it, and no pod is created, moved or deleted"},
	{point: "placement/distribution", file: "resourcedistribution/controller_test.go", test: "TestTheController",
		notDrawn: "a ResourceDistribution writes Secrets and ConfigMaps and touches no pod"},
}

// placementOfOthers are the lives in whose pods' creation a point of placement may be asked that they do not draw, and why.
var placementOfOthers = []struct{ kind, file, why string }{
	{"CloneSet", "cloneset/life_test.go", "placement/subset is of a WorkloadSpread, whose own life has the workload's pods created through the same " +
		"book; the controller of the CloneSet neither asks it nor sees the answer before it decides"},
	{"Advanced StatefulSet", "statefulset/life_test.go", "as of a CloneSet; placement/persistent is as said of the point"},
	{"Advanced DaemonSet", "daemonset/life_test.go", "a WorkloadSpread may not have a DaemonSet as its target, and the webhook leaves pods of a DaemonSet out of what is remembered"},
	{"SidecarSet", "sidecarset/life_test.go", "a SidecarSet creates no pod, and its controller asks no point of placement"},
}

// TestEachPointOfPlacementIsDrawnOrSaysWhyNot holds that the tables are complete, and that what they name is there.
func TestEachPointOfPlacementIsDrawnOrSaysWhyNot(t *testing.T) {
	left := map[string]bool{}
	for _, p := range catalog.All() {
		if p.Name.Domain() == "placement" {
			left[string(p.Name)] = true
		}
	}
	read := func(file string) string {
		text, err := os.ReadFile("../controllers/" + file)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	drawn := map[string]bool{}
	for _, of := range placementHistories {
		if !left[of.point] {
			t.Errorf("%s is no point, or is there twice", of.point)
		}
		delete(left, of.point)
		text := read(of.file)
		if !strings.Contains(text, "func "+of.test+"(t *testing.T)") {
			t.Errorf("%s: %s has no %s", of.point, of.file, of.test)
		}
		if draws := strings.Contains(text, "simulation.PlacementRules"); draws != (of.notDrawn == "") {
			t.Errorf("%s: that %s draws it is %v, and the reason why not is %q", of.point, of.test, draws, of.notDrawn)
		}
		drawn[of.file] = of.notDrawn == ""
	}
	for point := range left {
		t.Errorf("no history draws %s, and nothing says why", point)
	}
	others := map[string]string{}
	for _, o := range placementOfOthers {
		others[o.file] = o.why
	}
	for _, of := range holdHistories {
		if drawn[of.file] == (others[of.file] != "") {
			t.Errorf("the life of a %s draws placement: %v, and the reason why not is %q", of.kind, drawn[of.file], others[of.file])
		}
	}
}

// budgetHistories are the lives that draw a budget of their pods, by what, and why others do not.
var budgetHistories = []struct{ file, draws, notDrawn string }{
	{file: "cloneset/life_test.go", draws: "lives.DrawBudget("},
	{file: "statefulset/life_test.go", draws: "lives.DrawBudget("},
	{file: "daemonset/life_test.go", draws: "lives.DrawBudget("},
	{file: "sidecarset/life_test.go", draws: "l.spared ="},
	{file: "uniteddeployment/life_test.go", notDrawn: "the controllers of its children delete its pods, and these are drawn; by itself it deletes pods that are on no node, of which none is available"},
	{file: "workloadspread/life_test.go", notDrawn: "it deletes pods that have found no node, of which none is available; that a deletion is refused since a budget is used up is drawn"},
}

// TestEachLifeDrawsABudgetOrSaysWhyNot holds that the table is complete.
func TestEachLifeDrawsABudgetOrSaysWhyNot(t *testing.T) {
	known := map[string]string{}
	for _, of := range budgetHistories {
		known[of.file] = of.notDrawn
		text, err := os.ReadFile("../controllers/" + of.file)
		if err != nil {
			t.Error(err)
		}
		if (of.draws == "") == (of.notDrawn == "") || !strings.Contains(string(text), of.draws) || of.draws == "" && strings.Contains(string(text), "lives.DrawBudget(") {
			t.Errorf("%s draws a budget by %q, and the reason why not is %q", of.file, of.draws, of.notDrawn)
		}
	}
	for _, of := range holdHistories {
		if _, ok := known[of.file]; !ok {
			t.Errorf("the life of a %s is in no row", of.kind)
		}
	}
}
