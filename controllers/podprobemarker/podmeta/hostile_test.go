// SPDX-License-Identifier: Apache-2.0

package podmeta

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func FuzzSelects(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{kruise.PodProbeMarkerListKey: text}
		m, err := Read(&v1alpha1.PodProbeMarker{})
		if err != nil {
			t.Fatal(err)
		}
		m.SelectsPod(pod, true)
	})
}
