// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

func FuzzOf(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{Key: text}
		p, err := ReadPermits(pod)
		if err != nil {
			return
		}
		if _, err := p.AddToObject(pod, []string{"a"}, func(string) string { return "id" }); err != nil {
			t.Error(err)
		}
	})
}
