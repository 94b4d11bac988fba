// SPDX-License-Identifier: Apache-2.0

// Package facts has the facts about a new pod for policies of the domain injection.
package facts

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/injection"
)

// PodSubject is the pod that a decision is about.
func PodSubject(c *pod.Creation) decision.Subject {
	return decision.Subject{Kind: "Pod", Namespace: c.Namespace, Name: Name(c)}
}

// Name is the name of a pod, or the prefix of a name that is not generated yet.
func Name(c *pod.Creation) string {
	if c.Pod.Name != "" {
		return c.Pod.Name
	}
	return c.Pod.GenerateName
}

// PodInput is a pod as it is to be created; the labels are those of its namespace.
func PodInput(c *pod.Creation, namespace map[string]string) points.Pod {
	out := points.Pod{
		Namespace: c.Namespace, Name: Name(c), Labels: c.Pod.Labels, Annotations: WithoutApplied(c.Pod.Annotations),
		NamespaceLabels: namespace, NodeSelector: c.Pod.Spec.NodeSelector, ServiceAccount: c.Pod.Spec.ServiceAccountName,
		Containers: containerFacts(c.Pod.Spec.Containers), InitContainers: containerFacts(c.Pod.Spec.InitContainers),
	}
	if owner := metav1.GetControllerOfNoCopy(c.Pod); owner != nil {
		group, _ := schema.ParseGroupVersion(owner.APIVersion) // an invalid version has no group
		out.Owner = &points.Owner{Group: group.Group, Kind: owner.Kind, Name: owner.Name}
	}
	return out
}

func containerFacts(list []corev1.Container) []points.Container {
	out := []points.Container{}
	for i := range list {
		out = append(out, points.Container{Name: list[i].Name, Image: list[i].Image})
	}
	return out
}

// WithoutApplied copies annotations without that of kubectl apply, which is long. Records keep facts, so they must not
// share a map that changes later.
func WithoutApplied(all map[string]string) map[string]string {
	out := maps.Clone(all)
	delete(out, corev1.LastAppliedConfigAnnotation)
	return out
}
