// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func FuzzInconsistent(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{kruise.SidecarSetHashKey: text}
		pod.Spec.Containers = []corev1.Container{{Name: "c"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c"}}
		InconsistentReason(pod)
		pod.Annotations = map[string]string{kruise.SidecarSetHashKey: `{"a":{"sidecarList":["c"]}}`, kruise.SidecarSetInPlaceUpdateStateKey: text}
		InconsistentReason(pod)
	})
}
