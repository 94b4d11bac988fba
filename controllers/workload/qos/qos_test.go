// SPDX-License-Identifier: Apache-2.0

package qos

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// container has resources given as cpu limit, cpu request, memory limit and
// memory request; "" for none.
func container(limitCPU, requestCPU, limitMemory, requestMemory string) corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}}
	for _, r := range []struct {
		list  corev1.ResourceList
		name  corev1.ResourceName
		value string
	}{
		{c.Resources.Limits, "cpu", limitCPU}, {c.Resources.Requests, "cpu", requestCPU},
		{c.Resources.Limits, "memory", limitMemory}, {c.Resources.Requests, "memory", requestMemory},
	} {
		if r.value != "" {
			r.list[r.name] = resource.MustParse(r.value)
		}
	}
	return c
}

func TestOf(t *testing.T) {
	none, full := container("", "", "", ""), container("1", "1", "1Gi", "1Gi")
	other := corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"ephemeral-storage": resource.MustParse("1Gi")}}}
	whole := func(c corev1.Container) *corev1.ResourceRequirements { return &c.Resources }
	tests := map[string]struct {
		spec corev1.PodSpec
		want corev1.PodQOSClass
	}{
		"no resources":                               {corev1.PodSpec{Containers: []corev1.Container{none}}, corev1.PodQOSBestEffort},
		"other resources than cpu and memory":        {corev1.PodSpec{Containers: []corev1.Container{other}}, corev1.PodQOSBestEffort},
		"resources of nothing":                       {corev1.PodSpec{Containers: []corev1.Container{container("0", "0", "0", "0")}}, corev1.PodQOSBestEffort},
		"limits equal requests":                      {corev1.PodSpec{Containers: []corev1.Container{full}}, corev1.PodQOSGuaranteed},
		"in other words":                             {corev1.PodSpec{Containers: []corev1.Container{container("1", "1000m", "1Gi", "1024Mi")}}, corev1.PodQOSGuaranteed},
		"limits stand for requests":                  {corev1.PodSpec{Containers: []corev1.Container{container("1", "", "1Gi", "")}}, corev1.PodQOSGuaranteed},
		"requests do not stand for limits":           {corev1.PodSpec{Containers: []corev1.Container{container("", "1", "", "1Gi")}}, corev1.PodQOSBurstable},
		"a request below its limit":                  {corev1.PodSpec{Containers: []corev1.Container{container("2", "1", "1Gi", "1Gi")}}, corev1.PodQOSBurstable},
		"only cpu":                                   {corev1.PodSpec{Containers: []corev1.Container{container("1", "1", "", "")}}, corev1.PodQOSBurstable},
		"one container with and one without":         {corev1.PodSpec{Containers: []corev1.Container{full, none}}, corev1.PodQOSBurstable},
		"an init container without":                  {corev1.PodSpec{Containers: []corev1.Container{full}, InitContainers: []corev1.Container{none}}, corev1.PodQOSBurstable},
		"resources of the pod count instead":         {corev1.PodSpec{Containers: []corev1.Container{none}, Resources: whole(full)}, corev1.PodQOSGuaranteed},
		"and make a guaranteed container burstable":  {corev1.PodSpec{Containers: []corev1.Container{full}, Resources: whole(container("2", "1", "", ""))}, corev1.PodQOSBurstable},
		"resources of the pod that are empty do not": {corev1.PodSpec{Containers: []corev1.Container{full}, Resources: whole(none)}, corev1.PodQOSGuaranteed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ComputeClass(&tc.spec); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
