// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/regatta-sh/regatta/controllers/api/apitest"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// newFiller fills objects with what conversions treat specially more often than chance would.
func newFiller(seed int64) *randfill.Filler {
	return apitest.NewWithAnnotations(seed, map[string][]string{v1beta1.ProgressiveCreatePodKey: {"true", "false"}},
		func(v *intstr.IntOrString, c randfill.Continue) {
			some := []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("0%"), intstr.FromString("25%")}
			if pick := c.Intn(len(some) + 1); pick < len(some) {
				*v = some[pick]
				return
			}
			v.RandFill(c)
		},
		// Conversions hand pods on as a whole; filling all of them takes most of the time.
		func(p *corev1.PodSpec, c randfill.Continue) {
			*p = corev1.PodSpec{NodeName: c.String(0), Containers: []corev1.Container{{Name: c.String(0), Image: c.String(0)}}}
		},
		func(v *v1beta1.RollingUpdateType, c randfill.Continue) {
			some := []v1beta1.RollingUpdateType{"", SurgingRollingUpdateType, v1beta1.StandardRollingUpdateType, "anything"}
			*v = some[c.Intn(len(some))]
		},
	)
}

func annotated(pairs ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{}
	for i := 0; i < len(pairs); i += 2 {
		metav1.SetMetaDataAnnotation(&meta, pairs[i], pairs[i+1])
	}
	return meta
}
