// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// setDefaults sets the defaults that do not depend on the pod. An update keeps the fields that were set before, so that
// applying the same manifest again changes nothing.
func setDefaults(request, old *v1beta1.ContainerRecreateRequest) {
	spec := &request.Spec
	if len(spec.Containers) == 0 {
		return // Validate refuses it, so the missing spec is not created
	}
	if spec.Strategy == nil {
		spec.Strategy = &v1beta1.ContainerRecreateRequestStrategy{}
	}
	if spec.Strategy.FailurePolicy == "" {
		spec.Strategy.FailurePolicy = v1beta1.ContainerRecreateRequestFailurePolicyFail
	}
	if old == nil {
		conversiondata.SetMetadata(&request.Labels, v1beta1.ContainerRecreateRequestActiveKey, "true")
		return
	}
	if spec.Strategy.TerminationGracePeriodSeconds == nil && old.Spec.Strategy != nil {
		spec.Strategy.TerminationGracePeriodSeconds = old.Spec.Strategy.TerminationGracePeriodSeconds
	}
	for i := range spec.Containers {
		name := spec.Containers[i].Name
		before := slices.IndexFunc(old.Spec.Containers, func(c v1beta1.ContainerRecreateRequestContainer) bool { return c.Name == name })
		if before >= 0 && isName(&spec.Containers[i]) {
			old.Spec.Containers[before].DeepCopyInto(&spec.Containers[i])
		}
	}
}

// applyDefaults sets the fields that come from the pod and its node. Values of a container that a user has set
// stay, so that Validate refuses them.
func (c *cluster) applyDefaults(ctx context.Context, request *v1beta1.ContainerRecreateRequest) {
	pod, node, err := c.findPodAndNode(ctx, request)
	if err != nil {
		return // Validate reports the same error
	}
	for key, value := range labelsOf(pod, node) {
		conversiondata.SetMetadata(&request.Labels, key, value)
	}
	if strategy := request.Spec.Strategy; strategy != nil && strategy.TerminationGracePeriodSeconds == nil {
		strategy.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	}
	for i := range request.Spec.Containers {
		container := &request.Spec.Containers[i]
		if filled, why := containerOf(pod, container.Name); why == "" && isName(container) {
			*container = *filled
		}
	}
}

// labelsOf returns the labels by which the controller and the node find a request.
func labelsOf(pod *corev1.Pod, node *corev1.Node) map[string]string {
	labels := map[string]string{
		v1beta1.ContainerRecreateRequestPodUIDKey:   string(pod.UID),
		v1beta1.ContainerRecreateRequestNodeNameKey: node.Name,
	}
	if node.Labels[v1beta1.ServerlessNodeKey] == v1beta1.ServerlessNodeValue {
		labels[v1beta1.ServerlessNodeKey] = v1beta1.ServerlessNodeValue
	}
	return labels
}

// isName reports whether a container of a request has only its name, so that its other fields are set by the
// webhook.
func isName(container *v1beta1.ContainerRecreateRequestContainer) bool {
	return container.PreStop == nil && len(container.Ports) == 0 && container.StatusContext == nil
}
