// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// Writes fail before or after they were done, and processes begin anew: each node has one
// pod, never more than parallelism are active, and the job ends.
func TestCrashes(t *testing.T) {
	e := newEngine(t)
	rapid.Check(t, func(rt *rapid.T) {
		parallelism := rapid.IntRange(1, 4).Draw(rt, "parallelism")
		w := worldOf(t, e, func(j *kruise.BroadcastJob) {
			j.Spec.Parallelism = ptr.To(intstr.FromInt(parallelism))
			j.Spec.FailurePolicy.Type = kruise.FailurePolicyTypeContinue
		})
		w.node("d", nil)
		w.node("e", nil)
		created := map[string]int{}
		w.refuse = func(n int, verb string, o client.Object) error {
			if n < 0 && verb == "create" {
				created[nodefit.NodeOf(o.(*corev1.Pod))]++
			}
			if rapid.IntRange(0, 5).Draw(rt, fmt.Sprint(verb, n)) == 0 {
				return errors.New("the process ends")
			}
			return nil
		}
		w.r.writes = 1 // what is drawn must not depend on what is faster
		for step := 0; w.get().Status.Phase != completed; step++ {
			if step > 400 {
				rt.Fatalf("it does not end: %+v", w.get().Status)
			}
			if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err != nil {
				w.restart()
				w.r.writes = 1
			}
			active := 0
			for _, p := range w.pods() {
				if p.Status.Phase == "" {
					active++
				}
			}
			if active > parallelism {
				rt.Fatalf("%d pods are active, of %d", active, parallelism)
			}
			refuse := w.refuse
			w.refuse = nil
			node := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "node")
			w.phase(rapid.SampledFrom([]corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed}).Draw(rt, "phase"), node)
			w.refuse = refuse
		}
		for _, node := range []string{"a", "b", "c", "d", "e"} {
			if created[node] != 1 {
				rt.Fatalf("node %s had %d pods", node, created[node])
			}
		}
	})
}

// Whatever a policy answers, pods are created on nodes that wait, one each, and no more than
// there is room for.
func TestAnOverrideThatWantsEverything(t *testing.T) {
	w := newWorld(t, func(j *kruise.BroadcastJob) { j.Spec.Parallelism = ptr.To(intstr.FromInt32(2)) })
	w.override(`broadcast := {"nodes": ["c", "c", "b", "b", "a", "a"], "holds": [], "denials": []}`)
	w.round()
	w.where("b c")
	w.phase(corev1.PodSucceeded, "c")
	w.round()
	w.where("a b c")
}

func TestTheNamesOfPods(t *testing.T) {
	job := &kruise.BroadcastJob{}
	job.UID = "a985f4e0-ee7b-4dab-90b5-eabc41ce1fa9"
	var ids []string
	for i := range 2000 {
		ids = append(ids, podNameSuffix(job, fmt.Sprint("node-", i), 0))
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n < 1990 {
		t.Errorf("2000 nodes have %d names", n)
	}
	if again := job.DeepCopy(); podNameSuffix(again, "a", 0) != podNameSuffix(job, "a", 0) || podNameSuffix(job, "a", 0) == podNameSuffix(job, "a", 1) {
		t.Error("an attempt has another name each time, or all attempts have one")
	}
}

// Where the pod of another node, or a stranger's, has the name, the next one is taken.
func TestANameThatIsTaken(t *testing.T) {
	w := newWorld(t, nil)
	stranger := &corev1.Pod{}
	stranger.Namespace, stranger.Name = "ops", "upgrade-"+podNameSuffix(w.get(), "a", 0)
	if err := w.api.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.where(" a b c")
}
