// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
)

func TestAJobThatCannotBeReconciledSaysSo(t *testing.T) {
	half, tenth := intstr.FromString("half"), intstr.FromString("10%")
	w := newWorld(t, func(job *kruise.BroadcastJob) { job.Spec.Parallelism = &half })
	if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err == nil {
		t.Fatal("the parallelism can be read")
	}
	c := jobcondition.Find(w.get().Status.Conditions, failure.ConditionType)
	if c == nil || c.Status != "True" || !strings.Contains(c.Message, "reading spec.parallelism") {
		t.Errorf("the condition is %+v", c)
	}
	w.edit(func(job *kruise.BroadcastJob) { job.Spec.Parallelism = &tenth })
	w.round()
	if c := jobcondition.Find(w.get().Status.Conditions, failure.ConditionType); c != nil || len(w.pods()) != 1 {
		t.Errorf("at the end the condition is %+v, and there are %d pods", c, len(w.pods()))
	}
}

// A job that has no node would wait without a word.
func TestAJobWithoutANodeSaysSo(t *testing.T) {
	w := newWorld(t, func(job *kruise.BroadcastJob) {
		job.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "fast"}
	})
	w.round()
	c := jobcondition.Find(w.get().Status.Conditions, noNodeFits)
	if c == nil || c.Message != "No node fits the template of the job, so it has no pod. It goes on when a node does." || len(w.pods()) > 0 {
		t.Errorf("the condition is %+v, and there are %d pods", c, len(w.pods()))
	}
	w.node("a", func(n *corev1.Node) { n.Labels = map[string]string{"disk": "fast"} })
	w.round()
	if c := jobcondition.Find(w.get().Status.Conditions, noNodeFits); c != nil || len(w.pods()) != 1 {
		t.Errorf("with a node the condition is %+v, and there are %d pods", c, len(w.pods()))
	}
}

func TestAJobThatIsDeniedEachNodeSaysSo(t *testing.T) {
	w := newWorld(t, nil, `deny contains {"reason": "Kept", "message": "No.", "target": n.name} if some n in input.nodes`)
	w.round()
	if c := jobcondition.Find(w.get().Status.Conditions, noNodeFits); c == nil || !strings.HasPrefix(c.Message, "Policies deny the job each node") {
		t.Errorf("the condition is %+v", c)
	}
}

// While rounds fail the condition stays as it is: it is not written in each of them.
func TestTheConditionOfAFailureDoesNotFlap(t *testing.T) {
	w := newWorld(t, nil)
	broken, writes := errors.New("quota exceeded"), 0
	w.refuse = func(n int, verb string, o client.Object) error {
		if _, ok := o.(*kruise.BroadcastJob); ok && n > 0 {
			writes++
		}
		if _, ok := o.(*corev1.Pod); ok && n > 0 && verb == "create" {
			return broken
		}
		return nil
	}
	for i := range 6 {
		_, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key})
		if c := jobcondition.Find(w.get().Status.Conditions, failure.ConditionType); err == nil || c == nil || !strings.Contains(c.Message, "quota exceeded") {
			t.Errorf("after round %d the condition is %+v: %v", i, c, err)
		}
		if i == 1 {
			writes = 0
		}
	}
	if writes > 0 {
		t.Errorf("the status is written %d times in rounds that fail as those before", writes)
	}
	broken = nil
	w.round()
	if c := jobcondition.Find(w.get().Status.Conditions, failure.ConditionType); c != nil {
		t.Errorf("at the end the condition is %+v", c)
	}
}

// A job that has ended says no more that its pods cannot be deleted, once they are.
func TestAFailureBehindTheEndOfAJobIsLetGo(t *testing.T) {
	w := newWorld(t, func(job *kruise.BroadcastJob) { job.Spec.FailurePolicy.Type = kruise.FailurePolicyTypeFailFast })
	w.round()
	w.phase(corev1.PodFailed, "a")
	broken := errors.New("no answer")
	w.refuse = func(n int, verb string, o client.Object) error {
		if _, ok := o.(*corev1.Pod); ok && n > 0 && verb == "delete" {
			return broken
		}
		return nil
	}
	for range 2 {
		if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err == nil {
			t.Fatal("the pods could be deleted")
		}
	}
	if c := jobcondition.Find(w.get().Status.Conditions, failure.ConditionType); c == nil {
		t.Fatal("nothing says that the pods cannot be deleted")
	}
	broken = nil
	for range 2 {
		w.round()
	}
	if c := jobcondition.Find(w.get().Status.Conditions, failure.ConditionType); c != nil || len(w.pods()) > 1 {
		t.Errorf("at the end the condition is %+v, and there are %d pods", c, len(w.pods()))
	}
}
