// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/openkruise"
)

// Taking over what OpenKruise left runs nothing again: jobs that have ended stay as they are,
// and one that was under way goes on from its pods.
func TestTakingOverFromOpenKruise(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range []string{"node-1", "node-2", "node-3", "node-4"} {
		w.node(name, nil)
	}
	var under *kruise.BroadcastJob
	for _, o := range openkruise.Objects(t, apiserver.Scheme(t), "testdata/openkruise.yaml") {
		o.SetResourceVersion("")
		if job, ok := o.(*kruise.BroadcastJob); ok && under == nil { // as it was before its end
			under = job
			job.Status.Conditions, job.Status.CompletionTime, job.Status.Phase = nil, nil, kruise.BroadcastJobPhaseRunning
			job.Spec.Template.Spec.NodeSelector = map[string]string{"group": "openkruise"}
		}
		if err := w.api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"node-1", "node-2", "node-3", "node-4"} {
		w.node(name, func(n *corev1.Node) { n.Labels["group"] = "openkruise" })
	}
	all := func() (jobs kruise.BroadcastJobList, pods corev1.PodList) {
		for _, list := range []client.ObjectList{&jobs, &pods} {
			if err := w.api.List(t.Context(), list, client.InNamespace("shop")); err != nil {
				t.Fatal(err)
			}
		}
		return jobs, pods
	}
	jobs, pods := all()
	for range 3 {
		for i := range jobs.Items {
			if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&jobs.Items[i])}); err != nil {
				t.Fatal(err)
			}
		}
	}
	after, podsAfter := all()
	if diff := cmp.Diff(pods, podsAfter); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
	for i := range after.Items {
		if after.Items[i].Name == under.Name {
			w.key = client.ObjectKeyFromObject(under)
			w.status(completed, 4, 0, 4, 0)
			continue
		}
		if diff := cmp.Diff(jobs.Items[i], after.Items[i]); diff != "" {
			t.Errorf("a job that has ended (-before +after):\n%s", diff)
		}
	}
	if got := w.told(); got != "Normal JobComplete Job "+w.key.String()+" is completed, 4 pods succeeded, 0 pods failed" {
		t.Errorf("told is %q", got)
	}
}

// A job of OpenKruise that has reached one node of two goes on with the other.
func TestTakingOverAJobHalfWay(t *testing.T) {
	w := newWorld(t, func(j *kruise.BroadcastJob) {
		j.Status.Phase, j.Status.StartTime, j.Status.Active, j.Status.Desired = running, ptr.To(j.CreationTimestamp), 1, 3
	})
	pod := w.r.podFor(w.get(), "b")
	pod.Name = "upgrade-x7k2p" // of generateName
	if err := w.api.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.round()
	w.where("a b c")
	w.status(running, 3, 3, 0, 0)
	if got := nodefit.NodeOf(&w.pods()[0]); got == "" {
		t.Error("a pod has no node")
	}
}
