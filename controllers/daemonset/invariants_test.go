// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/rules"
)

// greedy replaces every point of rollouts by an answer that wants all at once.
const greedy = `package override.rollout

plan := {"limit": 1000, "maxUnavailable": 1000, "holds": [], "scatter": [], "unavailable": "Always"}

change := {"action": "Recreate", "reason": "Greedy", "message": "All at once."}

rank := {
	"keys": [[0] | some _ in input.pods],
	"descending": [],
	"lead": [[0] | some _ in input.pods],
	"holds": [],
}

scale := {
	"create": 1000, "createCurrent": 0, "delete": 1000, "deleteCurrent": 0, "keep": [], "planned": "All",
	"keys": [], "then": [], "descending": [], "holds": [],
}
`

func greedyEngine(t *testing.T) *engine.Engine {
	t.Helper()
	return rules.Engine(t, greedy)
}

// A bundle that replaces every decision moves no pod beyond the partition, none of a node that
// is not selected, and no available one while as many nodes are without one as may be.
func TestAnOverrideThatWantsEverythingIsClamped(t *testing.T) {
	w := newWorld(t, greedyEngine(t), standard, testSet(partition(1), maxUnavailable(2), rolling(func(r *kruise.RollingUpdateDaemonSet) {
		r.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: corev1.LabelHostname, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"n4"}}}}
	})), testNode("n1"), testNode("n2"), testNode("n3"), testNode("n4"))
	w.settle()
	if got, want := w.did(), "+n1=1 +n2=1 +n3=1 +n4=1"; got != want {
		t.Errorf("first it did %s, want %s", got, want)
	}
	w.broken["log:2"] = true
	w.change(image("2"))
	w.settle()
	if got, want := w.did(), "-n2=1 -n3=1 +n2=2 +n3=2"; got != want {
		t.Errorf("then it did %s, want %s", got, want)
	}
	if w.most > 1 {
		t.Errorf("%d pods ran on one node", w.most)
	}
}

func TestAnOverrideCreatesNoMoreThanMaxSurge(t *testing.T) {
	w := newWorld(t, greedyEngine(t), standard, testSet(surge(2)), testNode("n1"), testNode("n2"), testNode("n3"))
	w.settle()
	w.did()
	w.broken["log:2"] = true
	w.change(image("2"))
	w.settle()
	if got, want := w.did(), "+n2=2 +n3=2"; got != want {
		t.Errorf("it did %s, want %s", got, want)
	}
}

// Whatever write a controller ends at, or loses the answer of, no node ever runs two pods,
// and no more nodes than maxUnavailable lose theirs.
func TestAControllerMayEndAtAnyWrite(t *testing.T) {
	e := testEngine(t)
	for _, fault := range []simulation.Fault{simulation.EndsBefore, simulation.EndsAfter, simulation.LostAnswer, simulation.LostRace, simulation.Refuses} {
		for at := range 24 {
			w := newWorld(t, e, standard, testSet(maxUnavailable(2)), testNode("n1"), testNode("n2"), testNode("n3"), testNode("n4"))
			writes := 0
			w.Fault = func() simulation.Fault {
				if writes++; writes == at {
					return fault
				}
				return simulation.NoFault
			}
			w.settle()
			w.change(image("2"))
			w.settle()
			if w.most > 1 {
				t.Errorf("%s at write %d: %d pods ran on one node%s", fault, at, w.most, w.DescribeState())
			}
			if got, want := w.status(), "desired 4 current 4 ready 4 updated 4 available 4 unavailable 0 misscheduled 0"; got != want {
				t.Errorf("%s at write %d: %s%s", fault, at, got, w.DescribeState())
			}
			if w.lost > 2 {
				t.Errorf("%s at write %d: %d nodes were without an available pod", fault, at, w.lost)
			}
		}
	}
}

// Another revision that has the name of the next one is not ours: the count that makes names
// differ goes into our status, and no DaemonSet of Kubernetes is touched.
func TestACollisionOfNamesIsCountedInOurStatus(t *testing.T) {
	set := testSet()
	data, err := revision.EncodeTemplate(&set.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, testEngine(t), standard, set, testNode("n1"))
	w.AddObject(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "log-" + revision.HashData(data, 0), Namespace: "shop", UID: "other"}, Revision: 1})
	w.settle()
	if n := w.set().Status.CollisionCount; n == nil || *n != 1 {
		t.Errorf("the status counts %v collisions", n)
	}
	if hash := w.podOn("n1").Labels["controller-revision-hash"]; hash != revision.HashData(data, 1) || w.set().Status.UpdateRevision != hash {
		t.Errorf("the pod has %s, the status %s", hash, w.set().Status.UpdateRevision)
	}
}
