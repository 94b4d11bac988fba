// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func FuzzState(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: text}
		if s, err := DecodeState(pod); err == nil && (s == nil || s.LastContainerStatuses == nil) {
			t.Error("the state is nil, or has a nil map")
		}
		pod.Annotations[kruise.InPlaceUpdateGraceKey] = text
		if s, err := decodeGrace(pod); err == nil && s == nil {
			t.Error("the update is nil")
		}
		IncompleteReason(pod)
		ContainersToRefresh(pod)
	})
}
