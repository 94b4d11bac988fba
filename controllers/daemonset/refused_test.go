// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
)

func burstOf(n int32) func(*kruise.DaemonSet) {
	return func(set *kruise.DaemonSet) { set.Spec.BurstReplicas = number(n) }
}

func hooked(set *kruise.DaemonSet) {
	set.Spec.Template.Labels = map[string]string{"app": "log", "hook": "on"}
	set.Spec.Lifecycle = &kruise.Lifecycle{PreDelete: &kruise.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}}}
}

func TestANodeWhosePodIsRefusedKeepsNoOther(t *testing.T) {
	e := testEngine(t)
	for name, edits := range map[string][]func(*kruise.DaemonSet){
		"": nil, "one at a time": {burstOf(1)},
		"within the partition": {partition(2), func(set *kruise.DaemonSet) { set.Spec.ScaleStrategy.PartitionedScaling = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e, standard, testSet(edits...), testNode("n1"), testNode("n2"), testNode("n3"), testNode("n4"))
			w.Deny = func(o client.Object, what string) error {
				if pod, ok := o.(*corev1.Pod); ok && what == "create" && (nodefit.NodeOf(pod) == "n1" || nodefit.NodeOf(pod) == "n2") {
					return errors.New("the node has no room for it")
				}
				return nil
			}
			for range 20 {
				w.ShowAll(nil)
				w.Reconcile()
			}
			w.note()
			if got := w.did(); got != "+n3=1 +n4=1" {
				t.Errorf("it did %q, want the nodes that are not refused%s", got, w.DescribeState())
			}
		})
	}
}

func TestAPodThatAHookHoldsUsesUpNoBurst(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(hooked, burstOf(1)), testNode("n1"), testNode("n2"))
	w.settle()
	for _, name := range []string{"n1", "n2"} {
		w.SetNode(testNode(name, taint("gpu", corev1.TaintEffectNoExecute)))
	}
	for range 10 {
		w.ShowAll(nil)
		w.Reconcile()
	}
	for _, p := range w.ListPods() {
		if got := p.Labels[kruise.LifecycleStateKey]; got != string(kruise.LifecycleStatePreparingDelete) {
			t.Errorf("%s on %s is in state %q, though only the hook of the other holds a pod", p.Name, nodefit.NodeOf(p), got)
		}
	}
}

func TestADaemonThatHasEndedGoesByItsHook(t *testing.T) {
	w := newWorld(t, testEngine(t), standard, testSet(hooked), testNode("n1"))
	w.settle()
	failed := w.ListPods()[0].Name
	w.FailPod(w.FindPod(failed))
	for range 10 {
		w.ShowAll(nil)
		w.Reconcile()
	}
	p := w.FindPod(failed)
	if p == nil || p.DeletionTimestamp != nil || p.Labels[kruise.LifecycleStateKey] != string(kruise.LifecycleStatePreparingDelete) {
		t.Fatalf("got %v, want a pod that its hook holds%s", p, w.DescribeState())
	}
	p = p.DeepCopy()
	delete(p.Labels, "hook")
	w.Update(p)
	w.settle()
	if pods := w.ListPods(); len(pods) != 1 || pods[0].Name == failed {
		t.Errorf("got %s, want another daemon%s", fmt.Sprint(len(pods)), w.DescribeState())
	}
}
