// SPDX-License-Identifier: Apache-2.0

package runtimemeta

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func FuzzOf(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{kruise.RuntimeContainerMetaKey: text}
		_, _ = DecodeAnnotation(pod)
		ContainerMeta(pod, &corev1.ContainerStatus{ContainerID: "a"})
	})
}
