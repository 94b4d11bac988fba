// SPDX-License-Identifier: Apache-2.0

package sidecarterminator

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	points "github.com/regatta-sh/regatta/engine/decision/node"
)

// buildTerminationInput returns the input of the decision about a pod.
func (r *Reconciler) buildTerminationInput(pod *corev1.Pod, virtual bool) points.TerminationInput {
	in := points.TerminationInput{
		Now: r.Now().UnixNano(), Namespace: pod.Namespace, Virtual: virtual, RestartPolicy: string(pod.Spec.RestartPolicy), Phase: string(pod.Status.Phase),
		Pod: points.Pod{Name: pod.Name, Node: pod.Spec.NodeName, Labels: pod.Labels, Annotations: pod.Annotations},
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		in.Pod.Owner = &points.Owner{Kind: owner.Kind, Name: owner.Name}
	}
	in.Pod.Ready = availability.HasReadyCondition(pod)
	statuses := map[string]*corev1.ContainerStatus{}
	for i := range pod.Status.ContainerStatuses {
		statuses[pod.Status.ContainerStatuses[i].Name] = &pod.Status.ContainerStatuses[i]
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		out := points.EndingContainer{
			Name: c.Name, Image: c.Image, Sidecar: strings.EqualFold(envValue(c, kruise.TerminateSidecarWhenJobExitEnv), "true"),
			IgnoreExitCode: strings.EqualFold(envValue(c, kruise.TerminateSidecarIgnoreExitCodeEnv), "true"),
			EndImage:       envValue(c, kruise.TerminateSidecarWhenJobExitWithImageEnv),
		}
		if s := statuses[c.Name]; s != nil {
			out.Known = true
			if t := s.State.Terminated; t != nil {
				out.Terminated, out.Ended, out.ExitCode = true, containerstatus.HasEnded(pod, c.Name), int(t.ExitCode)
			}
		}
		in.Containers = append(in.Containers, out)
	}
	return in
}

// envValue is the value of an environment variable of a container; if it is set twice, the last one counts.
func envValue(c *corev1.Container, name string) (value string) {
	for i := range c.Env {
		if c.Env[i].Name == name {
			value = c.Env[i].Value
		}
	}
	return value
}
