// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
)

const madeAll = "+n1=1 +n2=1 +n3=1"

func TestScenarios(t *testing.T) {
	e := testEngine(t)
	type edit = func(*kruise.DaemonSet)
	three := []*corev1.Node{testNode("n1"), testNode("n2"), testNode("n3", labelled("pool", "edge"))}
	for name, tc := range map[string]struct {
		nodes  []*corev1.Node
		edit   []edit
		made   string // by the set as it was made
		broken string
		change []edit // one after the other
		did    string
		status string
		most   int // running pods of one node at once; 1 if 0
	}{
		"each node gets a pod": {made: madeAll, status: "desired 3 current 3 ready 3 updated 3 available 3 unavailable 0 misscheduled 0"},
		"a node that the selector of the template leaves out gets none": {
			edit: []edit{func(s *kruise.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "edge"} }},
			made: "+n3=1", status: "desired 1 current 1 ready 1 updated 1 available 1 unavailable 0 misscheduled 0",
		},
		"taints keep pods away, but for those that every daemon tolerates": {
			nodes: []*corev1.Node{
				testNode("n1", taint("gpu", corev1.TaintEffectNoSchedule)), testNode("n2", taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)),
				testNode("n3", taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)), testNode("n4", taint("gpu", corev1.TaintEffectPreferNoSchedule)),
			},
			made: "+n2=1 +n3=1 +n4=1",
		},
		"an update replaces one pod at a time, by node, the last name first": {
			made: madeAll, change: []edit{image("2")}, did: "-n3=1 +n3=2 -n2=1 +n2=2 -n1=1 +n1=2",
			status: "desired 3 current 3 ready 3 updated 3 available 3 unavailable 0 misscheduled 0",
		},
		"maxUnavailable lets more go at once": {
			edit: []edit{maxUnavailable(2)}, made: madeAll, change: []edit{image("2")}, did: "-n2=1 -n3=1 +n2=2 +n3=2 -n1=1 +n1=2",
		},
		"the partition keeps nodes at the revision before": {
			edit: []edit{partition(2)}, made: madeAll, change: []edit{image("2"), partition(1)}, did: "-n3=1 +n3=2 -n2=1 +n2=2",
			status: "desired 3 current 3 ready 3 updated 2 available 3 unavailable 0 misscheduled 0",
		},
		"a selector updates only the nodes that it selects": {
			edit: []edit{rolling(func(r *kruise.RollingUpdateDaemonSet) {
				r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: "n1"}}
			})},
			made: madeAll, change: []edit{image("2")}, did: "-n1=1 +n1=2",
		},
		"a paused update waits": {
			edit: []edit{rolling(func(r *kruise.RollingUpdateDaemonSet) { r.Paused = ptr.To(true) })}, made: madeAll, change: []edit{image("2")},
			status: "desired 3 current 3 ready 3 updated 0 available 3 unavailable 0 misscheduled 0",
		},
		"OnDelete updates none": {
			edit: []edit{func(s *kruise.DaemonSet) {
				s.Spec.UpdateStrategy = kruise.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
			}},
			made: madeAll, change: []edit{image("2")},
		},
		"surge creates the next pod before the one before goes": {
			edit: []edit{surge(1)}, made: madeAll, change: []edit{image("2")}, did: "+n3=2 -n3=1 +n2=2 -n2=1 +n1=2 -n1=1", most: 2,
			status: "desired 3 current 3 ready 3 updated 3 available 3 unavailable 0 misscheduled 0",
		},
		"surge stops where the next revision does not become ready": {
			edit: []edit{surge(2)}, made: madeAll, broken: "log:2", change: []edit{image("2")}, did: "+n2=2 +n3=2", most: 2,
		},
		"an update in place keeps the pods that have the readiness gate": {
			edit: []edit{inPlace}, made: madeAll, change: []edit{image("2")}, did: "~n3=2 ~n2=2 ~n1=2",
			status: "desired 3 current 3 ready 3 updated 3 available 3 unavailable 0 misscheduled 0",
		},
		"pods that were made before that have no gate and are recreated": {
			made: madeAll, change: []edit{func(s *kruise.DaemonSet) { inPlace(s); image("2")(s) }, image("3")},
			did: "-n3=1 +n3=2 -n2=1 +n2=2 -n1=1 +n1=2 ~n3=3 ~n2=3 ~n1=3",
		},
		"a revision that never becomes ready stops the update": {
			made: madeAll, broken: "log:2", change: []edit{image("2")}, did: "-n3=1 +n3=2",
			status: "desired 3 current 3 ready 2 updated 1 available 2 unavailable 1 misscheduled 0",
		},
		"the next revision replaces what is unavailable at once, and then goes on": {
			made: madeAll, broken: "log:2", change: []edit{image("2"), image("3")}, did: "-n3=1 +n3=2 -n3=2 +n3=3 -n2=1 +n2=3 -n1=1 +n1=3",
		},
		"pods that are unavailable all go at once": {
			edit: []edit{image("0")}, made: "+n1=0 +n2=0 +n3=0", broken: "log:0", change: []edit{image("1")}, did: "-n1=0 -n2=0 -n3=0 +n1=1 +n2=1 +n3=1",
		},
		"created progressively, as the partition is lowered": {
			edit: []edit{partition(2), func(s *kruise.DaemonSet) { s.Spec.ScaleStrategy.PartitionedScaling = true }},
			made: "+n1=1", change: []edit{partition(1), partition(0)}, did: "+n2=1 +n3=1",
		},
		"a burst of one creates one at a time, and deletes one at a time": {
			edit: []edit{func(s *kruise.DaemonSet) { s.Spec.BurstReplicas = number(1) }, maxUnavailable(3)},
			made: madeAll, change: []edit{image("2")}, did: "-n3=1 -n2=1 +n3=2 -n1=1 +n2=2 +n1=2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := tc.nodes
			if nodes == nil {
				nodes = three
			}
			w := newWorld(t, e, standard, testSet(tc.edit...), nodes...)
			w.broken[tc.broken] = true
			w.settle()
			if got := w.did(); got != tc.made {
				t.Errorf("first it did %s, want %s", got, tc.made)
			}
			for _, change := range tc.change {
				w.change(change)
				w.settle()
			}
			if got := w.did(); got != tc.did {
				t.Errorf("then it did %s, want %s", got, tc.did)
			}
			if got := w.status(); tc.status != "" && got != tc.status {
				t.Errorf("in the end: %s; want %s", got, tc.status)
			}
			if most := max(tc.most, 1); w.most > most {
				t.Errorf("%d pods ran on one node at once", w.most)
			}
		})
	}
}

// The names of pods are random. One that another pod of the set has is not that of a pod that
// was created when an answer was lost.
func TestANameThatAPodOfTheSetHasIsNotUsedAgain(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(surge(1)), testNode("n1"))
	rand.Seed(1)
	w.settle()
	rand.Seed(1)
	w.change(image("2"))
	w.settle()
	if got, want := w.did(), "+n1=1 +n1=2 -n1=1"; got != want {
		t.Errorf("it did %s, want %s", got, want)
	}
}

// A pod whose create was not answered is the pod of its node, also where the template changed
// before the controller could read it.
func TestAPodWhoseCreateWasNotAnsweredIsNotCreatedTwice(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(), testNode("n1"))
	w.Unreachable = true
	creates := false
	w.Deny = func(o client.Object, what string) error {
		_, pod := o.(*corev1.Pod)
		creates = pod && what == "create"
		return nil
	}
	w.Fault = func() simulation.Fault {
		if creates && len(w.ListPods()) == 0 {
			return simulation.LostAnswer
		}
		return simulation.NoFault
	}
	w.Reconcile() // creates the pod, which the cache does not show yet
	w.note()
	if len(w.ListPods()) != 1 {
		t.Fatalf("there are %d pods, want the one whose create was not answered%s", len(w.ListPods()), w.DescribeState())
	}
	w.Unreachable = false
	w.change(image("2"))
	w.Reconcile()
	w.settle()
	if got, want := w.did(), "+n1=1 -n1=1 +n1=2"; got != want {
		t.Errorf("it did %s, want %s", got, want)
	}
}
