// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// How many pods a workload wants is its parallelism for a Job, and for a filter with paths the
// sum of these, of those pods alone that the filter selects.
func TestWhatAPercentageIsOf(t *testing.T) {
	half := func(s *kruise.WorkloadSpread) { s.Spec.Subsets[0].MaxReplicas = ptr.To(intstr.FromString("50%")) }
	owner := func(apiVersion, kind string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "web", UID: uid, Controller: ptr.To(true)}}
	}
	for name, tc := range map[string]struct {
		edit   func(*kruise.WorkloadSpread)
		object client.Object
		owners []metav1.OwnerReference
		pods   map[string]int // by label role
		want   string
	}{
		"half of the parallelism of a Job": {
			edit: func(s *kruise.WorkloadSpread) {
				s.Spec.TargetReference = kruise.TargetReference{APIVersion: "batch/v1", Kind: "Job", Name: "web"}
			},
			object: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "job"}, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](6)}},
			owners: owner("batch/v1", "Job", "job"), pods: map[string]int{"main": 6}, want: "a=3/0 b=3/-1",
		},
		"half of the sum of two fields, of the pods that the filter selects": {
			edit: func(s *kruise.WorkloadSpread) {
				s.Spec.TargetReference = kruise.TargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}
				s.Spec.TargetFilter = &kruise.TargetFilter{
					Selector:         &metav1.LabelSelector{MatchLabels: map[string]string{"role": "main"}},
					ReplicasPathList: []string{"spec.replicas", "spec.minReadySeconds"},
				}
			},
			object: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "rs"}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](5), MinReadySeconds: 3}},
			owners: owner("apps/v1", "ReplicaSet", "rs"), pods: map[string]int{"main": 8, "other": 2}, want: "a=4/0 b=4/-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(s *kruise.WorkloadSpread) { half(s); tc.edit(s) }, tc.object)
			for role, n := range tc.pods {
				for range n {
					pod := w.pod()
					pod.Labels["role"], pod.OwnerReferences = role, tc.owners
					found, err := w.targets.FindSpread(t.Context(), "shop", pod)
					if err != nil || (found != nil) != (role == "main") {
						t.Fatalf("the spread of a pod of role %s is %v, %v", role, found, err)
					}
					if found != nil {
						subset, err := w.admit(t.Context(), w.book, pod, false)
						if err != nil {
							t.Fatal(err)
						}
						pod.Spec.NodeName = "node-" + subset
					}
					pod.Status.Phase = corev1.PodRunning
					if err := w.api.Create(t.Context(), pod); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.reconcile()
			if got := w.counts(); got != tc.want {
				t.Errorf("counted is %s, want %s", got, tc.want)
			}
		})
	}
}
