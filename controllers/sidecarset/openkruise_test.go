// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// What OpenKruise left in a cluster is taken over as it is: no pod is changed, no revision made or deleted, and the status has the
// same numbers. One of the states is in the middle of an update that a partition holds.
func TestTakingOverChangesNothing(t *testing.T) {
	raw, err := os.ReadFile("testdata/openkruise.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var phases []struct {
		Phase     string
		Sets      []kruise.SidecarSet
		Pods      []corev1.Pod
		Revisions []appsv1.ControllerRevision
	}
	if err := yaml.Unmarshal(raw, &phases); err != nil || len(phases) != 3 {
		t.Fatalf("%d states: %v", len(phases), err)
	}
	for _, was := range phases {
		t.Run(was.Phase, func(t *testing.T) {
			var objects []client.Object
			for i := range was.Sets {
				objects = append(objects, was.Sets[i].DeepCopy())
			}
			for i := range was.Pods {
				objects = append(objects, was.Pods[i].DeepCopy())
			}
			for i := range was.Revisions {
				objects = append(objects, was.Revisions[i].DeepCopy())
			}
			w := newWorld(t, "", objects...)
			for range 3 {
				for i := range was.Sets {
					w.round(was.Sets[i].Name)
				}
			}
			for i := range was.Pods {
				is := &corev1.Pod{}
				if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(&was.Pods[i]), is); err != nil {
					t.Fatal(err)
				}
				if !equality.Semantic.DeepEqual(was.Pods[i].Spec, is.Spec) || !equality.Semantic.DeepEqual(was.Pods[i].Annotations, is.Annotations) {
					t.Errorf("pod %s was changed: %v", is.Name, is.Annotations)
				}
			}
			for i := range was.Sets {
				want, got := was.Sets[i].Status, w.set(was.Sets[i].Name).Status
				got.Conditions = nil
				if !equality.Semantic.DeepEqual(want, got) {
					t.Errorf("the status of %s was %+v and is %+v", was.Sets[i].Name, want, got)
				}
			}
			list := &appsv1.ControllerRevisionList{}
			if err := w.api.List(t.Context(), list); err != nil || len(list.Items) != len(was.Revisions) {
				t.Errorf("%v, there were %d revisions and are %d", err, len(was.Revisions), len(list.Items))
			}
		})
	}
}
