// SPDX-License-Identifier: Apache-2.0

package podscope

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

func FuzzClaims(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{Annotation: text}
		claims, err := ReadClaims(pod)
		if err != nil {
			return
		}
		ClaimsToken(claims)
		for _, c := range claims {
			c.ID()
		}
	})
}
