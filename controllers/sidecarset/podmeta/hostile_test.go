// SPDX-License-Identifier: Apache-2.0

package podmeta

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func FuzzRead(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{kruise.SidecarSetHashKey: text}
		_, _ = Read(pod, kruise.SidecarSetHashKey)
		pod.Annotations[kruise.SidecarSetWorkingHotUpgradeKey] = text
		if err := SetWorking(pod, "a", "b"); err != nil {
			t.Fatal(err)
		}
		if err := (InjectionRecord{Set: "a"}).AnnotatePod(pod); err != nil {
			t.Fatal(err)
		}
		if entries, err := Read(pod, kruise.SidecarSetHashKey); err != nil || entries["a"].SidecarSetName != "a" {
			t.Errorf("the pod is not marked: %v", err)
		}
	})
}
