// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"testing"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func FuzzStatesOf(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{kruise.SidecarSetInPlaceUpdateStateKey: text}
		set := &kruise.SidecarSet{}
		set.Name = "a"
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "before"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", ImageID: "before"}}
		consistent("a", pod, []string{"c"})
		if err := setImage(set, pod, "c", "after", metav1.Now()); err != nil {
			t.Fatal(err)
		}
		if states, err := statesOf(pod); err != nil || states["a"] == nil {
			t.Errorf("the update is not recorded: %v, %v", states, err)
		}
	})
}
