// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/simulation/lives"
	"github.com/regatta-sh/regatta/test/rules"
)

// hold has a hold of simulation.HoldRules come.
func (w *world) hold(key, value string) {
	w.Helper()
	w.ChangeWorkload(func(o client.Object) { o.SetAnnotations(map[string]string{key: value}) })
}

// A node gets a pod of the revision before while the update of that pod would be held, whether the node is new or its pod was deleted.
func TestNewPodsAreOfTheRevisionThatIsNotHeld(t *testing.T) {
	e := rules.Engine(t, simulation.HoldRules)
	for name, tc := range map[string]struct{ key, value, did string }{
		"nothing is held": {"x", "", "-n1=1 -n2=1 +n1=2 +n2=2 +n3=2 +n4=2"},
		"the whole is held, and every pod was deleted": {simulation.HoldWhole, "Current", "-n1=1 -n2=1 +n1=1 +n2=1 +n3=1 +n4=1"},
		"the whole is held, with newPods: Update":      {simulation.HoldWhole, "Update", "-n1=1 -n2=1 +n1=2 +n2=2 +n3=2 +n4=2"},
		"the zone of n1 and n3 is held":                {simulation.HoldZone, "a", "-n1=1 -n2=1 +n1=1 +n2=2 +n3=1 +n4=2"},
		"a rule of rollout/rank holds each":            {simulation.HoldEach, "All", "-n1=1 -n2=1 +n1=1 +n2=1 +n3=1 +n4=1"},
		"a rule of rollout/rank fails":                 {simulation.HoldFailing, "Rank", "-n1=1 -n2=1 +n1=1 +n2=1 +n3=1 +n4=1"},
		"a rule of rollout/plan fails":                 {simulation.HoldFailing, "Plan", "-n1=1 -n2=1 +n1=1 +n2=1 +n3=1 +n4=1"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := lives.NewNodes(4)
			w := newWorld(t, e, standard, testSet(maxUnavailable(4)), nodes[:2]...)
			w.settle()
			w.did()
			w.hold(tc.key, tc.value)
			w.change(image("2"))
			w.SetNode(nodes[2])
			w.SetNode(nodes[3])
			for _, p := range w.ListPods() {
				w.Delete(p)
			}
			w.settleWithin(time.Minute) // what has no answer is asked again and again
			if got := w.did(); got != tc.did {
				t.Errorf("it did %s, want %s%s", got, tc.did, w.DescribeState())
			}
			w.hold("x", "")
			w.settle()
			if got := w.set().Status; got.UpdatedNumberScheduled != 4 || got.CurrentRevision != w.newest() {
				t.Errorf("when nothing is held %d nodes are updated, and the current revision is %s%s", got.UpdatedNumberScheduled, got.CurrentRevision, w.DescribeState())
			}
		})
	}
}

// A hold that counts the pods which are available does not undo the update that it counts.
func TestAHoldThatCountsDoesNotUndoAnUpdateThatWasBegun(t *testing.T) {
	w := newWorld(t, rules.Engine(t, `package extend.rollout.counts

hold contains {"rule": "counts", "reason": "Missing", "message": "pods are missing"} if input.counts.available < input.workload.replicas
`), standard, testSet(), lives.NewNodes(3)...)
	w.settle()
	w.change(image("2"))
	w.settle()
	if got, want := w.did(), "+n1=1 +n2=1 +n3=1 -n3=1 +n3=2 -n2=1 +n2=2 -n1=1 +n1=2"; got != want {
		t.Errorf("it did %s, want %s%s", got, want, w.DescribeState())
	}
}

// The revision before is that of the most pods where the status names none, as OpenKruise leaves it.
func TestTheRevisionBeforeIsThatOfMostPodsWhereTheStatusNamesNone(t *testing.T) {
	w := newWorld(t, rules.Engine(t, simulation.HoldRules), standard, testSet(partition(2)), lives.NewNodes(3)...)
	w.settle()
	w.change(image("2"))
	w.settle()
	w.did()
	set := w.set()
	set.Status.CurrentRevision = ""
	w.RestartController()
	w.hold(simulation.HoldWhole, "Current")
	w.change(image("3"))
	w.SetNode(slices.Clone(lives.NewNodes(4))[3])
	w.settle()
	if got, want := w.did(), "+n4=1"; got != want {
		t.Errorf("it did %s, want %s%s", got, want, w.DescribeState())
	}
}

// A surge replaces its pod at once: when the new pod is deleted, a hold that has come since is one of the next.
func TestASurgeLetsOnePodBeCreated(t *testing.T) {
	w := newWorld(t, rules.Engine(t, simulation.HoldRules), standard, testSet(surge(1), partition(1)), lives.NewNodes(2)...)
	w.settle()
	w.change(image("2"))
	w.settle()
	w.did()
	w.hold(simulation.HoldWhole, "Current")
	for _, p := range w.ListPods() {
		w.Delete(p)
	}
	w.settle()
	if got, want := w.did(), "-n1=1 -n2=2 +n1=1 +n2=1"; got != want {
		t.Errorf("it did %s, want %s%s", got, want, w.DescribeState())
	}
}

// A pod that an update creates beside another one is a new pod: what holds the scaling holds it too.
func TestASurgeIsHeldWithTheScaling(t *testing.T) {
	e := rules.Engine(t, simulation.HoldRules, simulation.OverrideRules)
	for name, hold := range map[string][2]string{
		"rollout/scale holds": {simulation.HoldScale, "All"},
		"rollout/scale fails": {simulation.HoldFailing, "Scale"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, e, standard, testSet(surge(1)), lives.NewNodes(2)...)
			w.settle()
			w.did()
			w.hold(hold[0], hold[1])
			w.change(image("2"))
			w.settleWithin(time.Minute)
			if got := w.did(); got != "" {
				t.Errorf("it did %s%s", got, w.DescribeState())
			}
			w.hold("x", "")
			w.settle()
			if got, want := w.did(), "+n2=2 -n2=1 +n1=2 -n1=1"; got != want {
				t.Errorf("when nothing is held it did %s, want %s%s", got, want, w.DescribeState())
			}
		})
	}
}

// An update in place restarts containers, so that the budget of a pod allows it first: the webhook of pods does not see that a pod leaves
// its services before its image changes.
func TestABudgetHoldsUpdatesInPlace(t *testing.T) {
	for _, most := range []int32{0, 1} {
		w := newWorld(t, testEngine(t), standard, testSet(inPlace, maxUnavailable(3)), lives.NewNodes(3)...)
		w.ProtectPods()
		w.settle()
		w.did()
		w.SetBudget(policy.PodUnavailableBudgetSpec{Selector: w.set().Spec.Selector, MaxUnavailable: number(most)})
		w.change(image("2"))
		w.settleWithin(time.Minute)
		if did := w.did(); did != "" && most == 0 || w.lost > int(most) {
			t.Errorf("with %d that may be unavailable it did %s, and had up to %d pods unavailable%s", most, did, w.lost, w.DescribeState())
		}
		w.DropBudget()
		w.settleWithin(time.Minute)
		if got := w.set().Status.UpdatedNumberScheduled; got != 3 {
			t.Errorf("without a budget %d are updated%s", got, w.DescribeState())
		}
	}
}

// limitPods lets a DaemonSet have no more than three pods.
const limitPods = `package override.rollout

import data.rollout

room := max([0, 3 - input.counts.total])

scale := object.union(rollout.scale, {"create": min([rollout.scale.create, room]), "createCurrent": 0})
`

// What the scaling creates counts when rollout/scale is asked about the surge of the same round.
func TestASurgeCountsWhatTheScalingCreates(t *testing.T) {
	w := newWorld(t, rules.Engine(t, limitPods), standard, testSet(surge(1)), lives.NewNodes(3)...)
	w.settle()
	w.did()
	w.Delete(w.ListPods()[0])
	w.change(image("2"))
	for range 5 {
		w.Reconcile()
		active := slices.DeleteFunc(w.ListPods(), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if len(active) != 3 {
			t.Fatalf("there are %d pods, want 3%s", len(active), w.DescribeState())
		}
	}
}
