// SPDX-License-Identifier: Apache-2.0

package runtimemeta

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// IsTracked reports whether node agents report the containers of a pod: a workload of
// apps.kruise.io controls the pod, or a SidecarSet has injected containers into it (PL-06).
func IsTracked(pod *corev1.Pod) bool {
	if _, ok := pod.Annotations[kruise.SidecarSetHashKey]; ok {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == kruise.GroupVersion.Group
}

// DecodeAnnotation reads what a node agent wrote on a pod. Without the annotation the result is empty.
func DecodeAnnotation(pod *corev1.Pod) (kruise.RuntimeContainerMetaSet, error) {
	text, ok := pod.Annotations[kruise.RuntimeContainerMetaKey]
	if !ok {
		return kruise.RuntimeContainerMetaSet{}, nil
	}
	set, err := annotation.Decode[kruise.RuntimeContainerMetaSet](kruise.RuntimeContainerMetaKey, text)
	if err != nil {
		return kruise.RuntimeContainerMetaSet{}, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	return set, nil
}

// ContainerMeta returns what a node agent wrote about the same run of a container as its status.
// ok is false if there is nothing, or the annotation cannot be read.
func ContainerMeta(pod *corev1.Pod, st *corev1.ContainerStatus) (told kruise.RuntimeContainerMeta, ok bool) {
	set, err := DecodeAnnotation(pod)
	if err != nil || st.ContainerID == "" {
		return told, false
	}
	for _, c := range set.Containers {
		if c.Name == st.Name && c.ContainerID == st.ContainerID {
			return c, true
		}
	}
	return told, false
}
