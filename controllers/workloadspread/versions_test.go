// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// Pods of the version that the workload updates to go last in the first subset, and those of other versions go first there,
// whatever the names of the pods are.
func TestCostsGoByTheUpdateRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   string
		status kruise.CloneSetStatus
		// numbers are the revisions of the ReplicaSets of the two versions.
		numbers [2]string
		want    string
	}{
		"the update revision of a CloneSet":                   {kind: "CloneSet", status: kruise.CloneSetStatus{UpdateRevision: "web-new"}, want: "old=100 new=200"},
		"an update that is taken back":                        {kind: "CloneSet", status: kruise.CloneSetStatus{UpdateRevision: "web-old"}, want: "old=200 new=100"},
		"a CloneSet without a status: that of the newest pod": {kind: "CloneSet", want: "old=100 new=200"},
		"the newest ReplicaSet of a Deployment":               {kind: "Deployment", numbers: [2]string{"1", "2"}, want: "old=100 new=200"},
		"a rollback of a Deployment":                          {kind: "Deployment", numbers: [2]string{"3", "2"}, want: "old=200 new=100"},
		"ReplicaSets without numbers: that of the newest pod": {kind: "Deployment", want: "old=100 new=200"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *kruise.WorkloadSpread) { s.Spec.TargetReference.Kind = tc.kind })
			versions := spread.ParseVersions("cloneset,deployment")
			w.r.version, w.book = versions, spread.NewRecorder(w.api, w.api, w.engine, w.targets, versions, spread.WithClock(func() time.Time { return w.now }), spread.WithPace(0))
			if tc.kind == "Deployment" {
				s := w.get()
				s.Spec.TargetReference.APIVersion = "apps/v1"
				if err := w.api.Update(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				if err := w.api.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "dep"}}); err != nil {
					t.Fatal(err)
				}
			}
			set := &kruise.CloneSet{}
			if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, set); err != nil {
				t.Fatal(err)
			}
			set.Status = tc.status
			if err := w.api.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			pods := map[string]*corev1.Pod{}
			for i, version := range []string{"old", "new"} {
				w.now = w.now.Add(time.Second)
				pod := w.pod()
				pod.Name = fmt.Sprintf("web-%d", 1+i) // the first by its name is old
				pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "web-" + version
				if tc.kind == "Deployment" {
					pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = version
					pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-" + version, UID: types.UID(version), Controller: ptr.To(true)}}
					rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
						Namespace: "shop", Name: "web-" + version, UID: types.UID(version), Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: version},
						Annotations:     map[string]string{DeploymentRevisionKey: tc.numbers[i]},
						OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "dep", Controller: ptr.To(true)}},
					}}
					if err := w.api.Create(t.Context(), rs); err != nil {
						t.Fatal(err)
					}
				}
				if subset, err := w.admit(t.Context(), w.book, pod, false); err != nil || subset != "a" {
					t.Fatalf("the pod goes to %q, %v", subset, err)
				}
				pod.Spec.NodeName, pod.Status.Phase = "node-a", corev1.PodRunning
				if err := w.api.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				pods[version] = pod
			}
			w.reconcile()
			for _, pod := range pods {
				if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
					t.Fatal(err)
				}
			}
			cost := func(version string) string { return pods[version].Annotations[kruise.PodDeletionCostKey] }
			if got := fmt.Sprintf("old=%s new=%s", cost("old"), cost("new")); got != tc.want {
				t.Errorf("the costs are %s, want %s", got, tc.want)
			}
		})
	}
}

// A new update revision of a CloneSet, and another version of a pod that was updated in place, are looked at.
func TestEventsOfVersions(t *testing.T) {
	set := func(revision string) *kruise.CloneSet {
		return &kruise.CloneSet{Status: kruise.CloneSetStatus{UpdateRevision: revision}}
	}
	pod := func(revision string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}}}
	}
	for _, next := range []string{"a", "b"} {
		if got := newRevisions().Update(event.UpdateEvent{ObjectOld: set("a"), ObjectNew: set(next)}); got != (next == "b") {
			t.Errorf("a CloneSet that updates to %s is looked at: %t", next, got)
		}
		if got := podChangePredicate().Update(event.UpdateEvent{ObjectOld: pod("a"), ObjectNew: pod(next)}); got != (next == "b") {
			t.Errorf("a pod of revision %s is looked at: %t", next, got)
		}
	}
}
