// SPDX-License-Identifier: Apache-2.0

package subset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

func FuzzPatched(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Add(`{"spec":{"containers":[null]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		out, err := ApplyPatch(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}, []byte(text))
		if (out == nil) != (err != nil) {
			t.Errorf("the error is %v, and there is a pod: %v", err, out != nil)
		}
	})
}
