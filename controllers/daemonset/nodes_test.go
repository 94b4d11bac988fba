// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// podOn is the pod of a node that does not terminate.
func (w *world) podOn(node string) *corev1.Pod {
	w.Helper()
	for _, p := range w.ListPods() {
		if nodefit.NodeOf(p) == node && p.DeletionTimestamp == nil {
			return p
		}
	}
	w.Fatalf("no pod is on %s", node)
	return nil
}

func TestNodesComeAndGo(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(), testNode("n1"), testNode("n2"))
	for _, step := range []struct {
		what string
		do   func()
		did  string
		now  string
	}{
		{"two nodes", func() {}, "+n1=1 +n2=1", "desired 2 current 2 ready 2 updated 2 available 2 unavailable 0 misscheduled 0"},
		{"a node comes", func() { w.SetNode(testNode("n3")) }, "+n3=1", "desired 3 current 3 ready 3 updated 3 available 3 unavailable 0 misscheduled 0"},
		{"a taint NoSchedule leaves the pod", func() { w.SetNode(testNode("n3", taint("gpu", corev1.TaintEffectNoSchedule))) }, "", "desired 2 current 2 ready 2 updated 2 available 2 unavailable 0 misscheduled 1"},
		{"a pod that goes from there does not come back", func() { w.Delete(w.podOn("n3")) }, "-n3=1", "desired 2 current 2 ready 2 updated 2 available 2 unavailable 0 misscheduled 0"},
		{"the taint goes", func() { w.SetNode(testNode("n3")) }, "+n3=1", ""},
		{"a taint NoExecute deletes the pod", func() { w.SetNode(testNode("n3", taint("gpu", corev1.TaintEffectNoExecute))) }, "-n3=1", "desired 2 current 2 ready 2 updated 2 available 2 unavailable 0 misscheduled 0"},
		{"a cordoned node keeps its pod", func() {
			w.SetNode(testNode("n2", taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), func(n *corev1.Node) { n.Spec.Unschedulable = true }))
		}, "", "desired 2 current 2 ready 2 updated 2 available 2 unavailable 0 misscheduled 0"},
		{"and gets another", func() { w.Delete(w.podOn("n2")) }, "-n2=1 +n2=1", ""},
		{"a heartbeat", func() {
			n := testNode("n1", func(n *corev1.Node) {
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			})
			w.SetNode(n)
			w.settle()
			before := len(w.ActionHistory())
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(w.Now)
			w.SetNode(n)
			w.settle()
			if rounds := w.ActionHistory()[before:]; len(rounds) > 0 {
				t.Errorf("a heartbeat caused %v", rounds)
			}
		}, "", ""},
		{"a node goes", func() { w.DropNode("n1") }, "", "desired 1 current 1 ready 1 updated 1 available 1 unavailable 0 misscheduled 0"},
	} {
		step.do()
		w.settle()
		if got := w.did(); got != step.did {
			t.Errorf("%s: it did %s, want %s", step.what, got, step.did)
		}
		if got := w.status(); step.now != "" && got != step.now {
			t.Errorf("%s: %s, want %s", step.what, got, step.now)
		}
	}
}

// A pod that waits for a node that is gone would wait indefinitely.
func TestAPodWhoseNodeWentBeforeItWasScheduledIsDeleted(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(), testNode("n1"), testNode("n2"))
	w.ReconcileIfDue()
	w.note()
	w.DropNode("n2")
	w.settle()
	if got, want := w.did(), "+n1=1 +n2=1 -n2=1"; got != want {
		t.Errorf("it did %s, want %s", got, want)
	}
}

func TestWhatAPodIsMadeOf(t *testing.T) {
	e := testEngine(t)
	set := testSet(inPlace, func(s *kruise.DaemonSet) {
		s.Annotations = map[string]string{templateGeneration: "7"}
		s.Spec.Template.Spec.HostNetwork = true
		seconds := int64(30)
		s.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}}
	})
	for by, kind := range map[string]func() *Kind{"scheduler": standard, "controller": func() *Kind { return New(Gates{}, false) }} {
		w := newWorld(t, e, kind, set, testNode("n1"))
		w.ReconcileIfDue()
		p := w.podOn("n1")
		if named := p.Spec.NodeName != ""; named != (by == "controller") || (p.Spec.Affinity == nil) != named {
			t.Errorf("by the %s: the pod names node %q, and its affinity is %v", by, p.Spec.NodeName, p.Spec.Affinity)
		}
		if !strings.HasPrefix(p.Name, "log-") || len(p.Name) != 9 || p.GenerateName != "log-" {
			t.Errorf("it is named %s, of %s", p.Name, p.GenerateName)
		}
		if hash := p.Labels["controller-revision-hash"]; hash == "" || strings.Contains(hash, "-") || p.Labels[templateGenerationLabel] != "7" {
			t.Errorf("it is labelled %v", p.Labels)
		}
		if n := len(p.Spec.Tolerations); n != 7 || p.Spec.Tolerations[0].TolerationSeconds != nil {
			t.Errorf("it tolerates %v", p.Spec.Tolerations)
		}
		if !inplace.HasGate(p) || p.Spec.ReadinessGates[1].ConditionType != kruise.KruisePodReady {
			t.Errorf("its gates are %v", p.Spec.ReadinessGates)
		}
	}
}

func TestAFailedPodIsReplacedLaterAndLater(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(), testNode("n1"))
	w.settle()
	var waited []time.Duration
	for range 12 {
		w.FailPod(w.podOn("n1"))
		was := w.Now
		w.settle()
		waited = append(waited, w.Now.Sub(was))
	}
	want := []time.Duration{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900}
	for i := range want {
		if waited[i] != want[i]*time.Second {
			t.Fatalf("it waited for %v", waited)
		}
	}
	if !w.HasEvent("Warning FailedDaemonPod Found failed daemon pod shop/log-") {
		t.Error("no event tells it")
	}
	w.change(image("2")) // which may be better
	w.FailPod(w.podOn("n1"))
	was := w.Now
	w.settle()
	if w.Now != was {
		t.Errorf("after a change it waited for %s", w.Now.Sub(was))
	}
}

func TestAPreDeleteHookHoldsAPod(t *testing.T) {
	hook := func(s *kruise.DaemonSet) {
		s.Spec.Template.Labels = map[string]string{"app": "log", "hold": "yes"}
		s.Spec.Lifecycle = &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hold": "yes"}}}
	}
	w := newWorld(t, testEngine(t), standard, testSet(hook), testNode("n1"), testNode("n2"))
	w.settle()
	w.did()
	w.change(image("2"))
	for range 5 { // the hook does not answer
		w.ShowAll(nil)
		w.ReconcileIfDue()
	}
	w.note()
	p := w.podOn("n2")
	if got := w.did(); got != "" || p.Labels[kruise.LifecycleStateKey] != string(kruise.LifecycleStatePreparingDelete) {
		t.Errorf("it did %s, and the pod has %v", got, p.Labels)
	}
	if state := w.podOn("n1").Labels[kruise.LifecycleStateKey]; state != "" {
		t.Errorf("the other one is in state %s, and one may be unavailable", state)
	}
	w.settle()
	if got, want := w.did(), "-n2=1 +n2=2 -n1=1 +n1=2"; got != want {
		t.Errorf("then it did %s, want %s", got, want)
	}
}

// OpenKruise's release before told at each reconcile that nodes wait for maxUnavailable.
func TestWaitingIsToldOnceForEachChange(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(), testNode("n1"), testNode("n2"), testNode("n3"))
	w.settle()
	const text = "Warning numUnavailable >= maxUnavailable shop/log number of unavailable DaemonSet pods: 1, is equal to or exceeds allowed maximum: 1"
	for _, tag := range []string{"2", "3"} {
		w.change(image(tag))
		w.settle()
		if !w.HasEvent(text) {
			t.Errorf("revision %s: no event tells it", tag)
		}
		if w.HasEvent(text) {
			t.Errorf("revision %s: a second event tells it", tag)
		}
	}
}

// Rules of users see the nodes: which come first by a label, and which are left alone.
func TestRulesOfNodes(t *testing.T) {
	e := testEngine(t)
	b, err := bundle.FromFiles("nodes", map[string]string{"nodes.rego": `package extend.rollout.nodes

rank := {pod.name: -1 | some pod in input.pods; pod.onNode.labels.canary == "true"}

hold contains {"reason": "Cordoned", "message": "The node is cordoned.", "pod": pod.name} if {
	some pod in input.pods
	pod.onNode.unschedulable
}

hold contains {"reason": "UnderPressure", "message": "The node is short of memory.", "pod": pod.name} if {
	some pod in input.pods
	"MemoryPressure" in pod.onNode.conditions
}
`})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	pressed := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}}
	}
	w := newWorld(t, e, standard, testSet(), testNode("n1", labelled("canary", "true")), testNode("n2"), testNode("n3", cordoned), testNode("n4", pressed))
	w.settle()
	w.did()
	w.change(image("2"))
	w.settle()
	if got, want := w.did(), "-n1=1 +n1=2 -n2=1 +n2=2"; got != want {
		t.Errorf("it did %s, want %s", got, want)
	}
	w.SetNode(testNode("n3"))
	w.SetNode(testNode("n4"))
	w.settle()
	if got, want := w.did(), "-n4=1 +n4=2 -n3=1 +n3=2"; got != want {
		t.Errorf("then it did %s, want %s", got, want)
	}
}
