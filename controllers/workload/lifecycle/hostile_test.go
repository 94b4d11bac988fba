// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// A message of the condition that we did not write has no key of ours: nothing is taken back, so nothing is written.
func FuzzSetKey(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{
			Spec:   corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: kruise.KruisePodReady, Message: text}}},
		}
		mine := kruise.PodReadinessMessage{UserAgent: "fuzz", Key: "a key that no text has by chance"}
		if wrote, err := (Writer{}).SetKey(t.Context(), pod, mine, false); wrote || err != nil {
			t.Errorf("written: %v, %v", wrote, err)
		}
	})
}
