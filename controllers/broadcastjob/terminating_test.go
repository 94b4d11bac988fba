// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
)

// The pod of a node that is gone for good terminates indefinitely, and its job waits for it: with a word.
func TestAJobThatWaitsForAPodOfADeadNodeSaysSo(t *testing.T) {
	w := newWorld(t, nil)
	w.round()
	w.phase(corev1.PodSucceeded, "b", "c")
	var pod corev1.Pod
	for _, p := range w.pods() {
		p.Spec.NodeName = nodefit.NodeOf(&p) // the scheduler
		p.Finalizers = []string{"test/kubelet"}
		if err := w.api.Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		if p.Spec.NodeName == "a" {
			pod = p
		}
	}
	if err := w.api.Delete(t.Context(), &pod); err != nil { // by the eviction from a node that does not answer
		t.Fatal(err)
	}
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(&pod), &pod); err != nil {
		t.Fatal(err)
	}
	condition := func() *kruise.JobCondition { return jobcondition.Find(w.get().Status.Conditions, podsStuckTerminating) }
	w.now = pod.DeletionTimestamp.Add(10 * time.Second)
	w.told()
	again := w.round()
	if c := condition(); c != nil || again != 50*time.Second {
		t.Errorf("while it may terminate: %+v, again in %s", c, again)
	}
	w.now = w.now.Add(again)
	w.round()
	want := "The job waits for 1 pods that were deleted and whose grace period is over, since their node does not answer or they have finalizers. It goes on when they, or their nodes, are gone: " + pod.Name + " on node a"
	if c := condition(); c == nil || c.Message != want {
		t.Errorf("the condition is %+v", c)
	}
	if told := w.told(); told != "Warning "+podsStuckTerminating+" "+want {
		t.Errorf("the events are %q", told)
	}
	w.expect(explain.Running, "running", want+". Of 3 nodes")
	pod.Finalizers = nil
	if err := w.api.Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.where("a b c")
	if c := condition(); c != nil {
		t.Errorf("when it is gone the condition is %+v", c)
	}
}

// What is not waited for is not told: of a node that has a newer pod, and of one that the job is not for any more.
func TestATerminatingPodThatNothingWaitsForIsNotTold(t *testing.T) {
	w := newWorld(t, nil)
	w.round()
	for _, p := range w.pods() {
		p.Spec.NodeName = nodefit.NodeOf(&p)
		p.Finalizers = []string{"test/kubelet"}
		if err := w.api.Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Delete(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		w.node(name, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	}
	w.now = time.Now().Add(time.Hour)
	w.round()
	if c := jobcondition.Find(w.get().Status.Conditions, podsStuckTerminating); c != nil {
		t.Errorf("the condition is %+v", c)
	}
}
