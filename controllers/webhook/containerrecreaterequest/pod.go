// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// cluster reads pods and nodes.
type cluster struct {
	reader client.Reader
}

// findPodAndNode finds the pod of a request, and its node, or says why no container of it can be restarted.
func (c *cluster) findPodAndNode(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (*corev1.Pod, *corev1.Node, *field.Error) {
	name, path := request.Spec.PodName, field.NewPath("spec", "podName")
	pod := &corev1.Pod{}
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: request.Namespace, Name: name}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, field.Invalid(path, name, "no found Pod named "+name)
	case err != nil:
		return nil, nil, field.InternalError(path, fmt.Errorf("finding pod %s: %w", name, err))
	case !isActive(pod):
		return nil, nil, field.Invalid(path, name, "the pod has ended or is being deleted")
	case pod.Spec.NodeName == "":
		return nil, nil, field.Invalid(path, name, "the pod is on no node yet")
	}
	node := &corev1.Node{}
	err = c.reader.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, node)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, field.Invalid(path, name, "the pod is on node "+pod.Spec.NodeName+", which does not exist")
	case err != nil:
		return nil, nil, field.InternalError(path, fmt.Errorf("finding node %s: %w", pod.Spec.NodeName, err))
	}
	return pod, node, nil
}

// isActive reports whether containers of a pod may run. A pod whose sidecars Regatta ends has ended by its
// phase, but its sidecars still run.
func isActive(pod *corev1.Pod) bool {
	if slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == v1beta1.SidecarTerminatedConditionType
	}) {
		return true
	}
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// containerOf returns the entry of a container for a request, or why the container cannot be restarted.
func containerOf(pod *corev1.Pod, name string) (filled *v1beta1.ContainerRecreateRequestContainer, why string) {
	i := slices.IndexFunc(pod.Spec.Containers, func(container corev1.Container) bool { return container.Name == name })
	if i < 0 {
		return nil, "pod " + pod.Name + " has no such container"
	}
	j := slices.IndexFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.Name == name })
	if j < 0 || pod.Status.ContainerStatuses[j].ContainerID == "" {
		return nil, "the container has no containerID in the status of pod " + pod.Name + ", as it has never run"
	}
	container, status := pod.Spec.Containers[i].DeepCopy(), &pod.Status.ContainerStatuses[j]
	filled = &v1beta1.ContainerRecreateRequestContainer{
		Name: name, StatusContext: &v1beta1.ContainerRecreateRequestContainerContext{
			ContainerID: status.ContainerID, RestartCount: status.RestartCount,
		},
	}
	if container.Lifecycle == nil || container.Lifecycle.PreStop == nil {
		return filled, ""
	}
	preStop := container.Lifecycle.PreStop
	if *preStop != (corev1.LifecycleHandler{}) {
		filled.PreStop = &v1beta1.PreStopHandler{Exec: preStop.Exec, HTTPGet: preStop.HTTPGet, TCPSocket: preStop.TCPSocket, Sleep: preStop.Sleep}
	}
	if preStop.HTTPGet != nil {
		filled.Ports = container.Ports
	}
	return filled, ""
}
