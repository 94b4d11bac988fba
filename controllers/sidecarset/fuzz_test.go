// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func FuzzStatesAndVerdicts(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kruise.SidecarSetInPlaceUpdateStateKey: text}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: kruise.SidecarSetUpgradableCondition, Message: text}}},
		}
		readVerdicts(pod)
		states, _ := statesOf(pod)
		states["logs"] = &kruise.InPlaceUpdateState{} // must not be a nil map
		for set, state := range states {
			if state == nil {
				t.Errorf("the state of %q is nil", set)
			}
		}
	})
}
