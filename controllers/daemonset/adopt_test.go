// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/simulation"
)

func TestAdoptsWhatADaemonSetOfItsNameLeft(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(), testNode("n1"), testNode("n2"))
	w.settle()
	if got := w.did(); got != "+n1=1 +n2=1" {
		t.Fatalf("first it did %s", got)
	}
	w.OrphanDependents()
	w.settle()
	if got := w.did(); got != "" {
		t.Errorf("the new set did %s, want nothing: each node has its daemon%s", got, w.DescribeState())
	}
	for _, p := range w.ListPods() {
		if !metav1.IsControlledBy(p, w.CurrentWorkload()) {
			t.Errorf("pod %s is not adopted", p.Name)
		}
	}
	if revisions := simulation.ListObjects[*appsv1.ControllerRevision](w.Harness); len(revisions) != 1 || !metav1.IsControlledBy(revisions[0], w.CurrentWorkload()) {
		t.Errorf("got revisions %v, want the one there was, of the new set", revisions)
	}
}

func TestAdoptsADaemonThatIsLabelledBack(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(), testNode("n1"))
	w.settle()
	pod := w.ListPods()[0].DeepCopy()
	delete(pod.Labels, "app")
	w.Update(pod)
	w.settle()
	if got := w.did(); got != "+n1=1 +n1=1" {
		t.Errorf("it did %s, want another daemon in place of the one that was taken out", got)
	}
	pod = w.FindPod(pod.Name).DeepCopy()
	if metav1.IsControlledBy(pod, w.CurrentWorkload()) {
		t.Fatal("the pod is not released")
	}
	pod.Labels["app"] = "log"
	w.Update(pod)
	w.settle()
	if got := len(w.ListPods()); got != 1 {
		t.Errorf("there are %d daemons on the node, want 1%s", got, w.DescribeState())
	}
}
