// SPDX-License-Identifier: Apache-2.0

package runtimemeta

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// What the node agent hashes is what the manager expects, for each env that a kubelet
// makes of a spec.
func TestActualIsExpectedOfTheSameValues(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"shop.example/color": "red=\nblue"},
	}}
	tier, color := field("TIER", "metadata.labels['tier']"), field("COLOR", "metadata.annotations['shop.example/color']")
	for name, tc := range map[string]struct {
		env  []corev1.EnvVar
		runs map[string]string
		same bool
	}{
		"no env":                       {nil, nil, true},
		"only values":                  {[]corev1.EnvVar{{Name: "A", Value: "1"}}, map[string]string{"A": "2"}, true},
		"other fields of the pod":      {[]corev1.EnvVar{field("NAME", "metadata.name")}, map[string]string{"NAME": "web"}, true},
		"a label and an annotation":    {[]corev1.EnvVar{tier, color}, map[string]string{"TIER": "gold", "COLOR": "red=\nblue", "PATH": "/bin"}, true},
		"an annotation of before":      {[]corev1.EnvVar{tier, color}, map[string]string{"TIER": "gold", "COLOR": "red"}, false},
		"a key that the pod lacks":     {[]corev1.EnvVar{field("GONE", "metadata.labels['gone']")}, map[string]string{"GONE": ""}, true},
		"a key that the pod has lost":  {[]corev1.EnvVar{field("GONE", "metadata.labels['gone']")}, map[string]string{"GONE": "was"}, false},
		"a name that is defined again": {[]corev1.EnvVar{tier, {Name: "TIER", Value: "fixed"}}, map[string]string{"TIER": "fixed"}, true},
		"a name that metadata defines": {[]corev1.EnvVar{{Name: "TIER", Value: "fixed"}, tier}, map[string]string{"TIER": "gold"}, true},
		"a path that is no reference":  {[]corev1.EnvVar{field("ALL", "metadata.labels")}, map[string]string{"ALL": "x"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &corev1.Container{Name: "main", Env: tc.env}
			if got := ActualEnvHash(c, tc.runs) == ExpectedEnvHash(pod, c); got != tc.same {
				t.Errorf("the hashes are the same: %t, want %t", got, tc.same)
			}
			if ActualEnvHash(c, tc.runs) == 0 {
				t.Error("a hash is 0, which means that none is known")
			}
		})
	}
}

func TestFollowed(t *testing.T) {
	owned := func(apiVersion string, controls bool) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: "CloneSet", Controller: &controls}}}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a pod of no workload":           {&corev1.Pod{}, false},
		"a pod of a CloneSet":            {owned("apps.kruise.io/v1alpha1", true), true},
		"a pod that it does not control": {owned("apps.kruise.io/v1beta1", false), false},
		"a pod of Kubernetes":            {owned("apps/v1", true), false},
		"an owner that cannot be read":   {owned("a/b/c", true), false},
		"a pod with sidecars":            {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kruise.SidecarSetHashKey: "{}"}}}, true},
	} {
		if got := IsTracked(tc.pod); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestToldIsOfTheVeryRun(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		kruise.RuntimeContainerMetaKey: `{"containers":[{"name":"main","containerID":"containerd://1","restartCount":2,"hashes":{"plainHash":3}}]}`,
	}}}
	for id, want := range map[string]bool{"containerd://1": true, "containerd://2": false, "": false} {
		if told, ok := ContainerMeta(pod, &corev1.ContainerStatus{Name: "main", ContainerID: id}); ok != want || ok && told.Hashes.PlainHash != 3 {
			t.Errorf("%s: %+v, %t", id, told, ok)
		}
	}
	pod.Annotations[kruise.RuntimeContainerMetaKey] = "{"
	if _, err := DecodeAnnotation(pod); err == nil {
		t.Error("an annotation that cannot be read is no error")
	}
	if _, ok := ContainerMeta(pod, &corev1.ContainerStatus{Name: "main", ContainerID: "containerd://1"}); ok {
		t.Error("an annotation that cannot be read tells something")
	}
}
