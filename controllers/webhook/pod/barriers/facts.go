// SPDX-License-Identifier: Apache-2.0

package barriers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/sidecarset/podmeta"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	points "github.com/regatta-sh/regatta/engine/decision/launchpriority"
)

func inputOf(c *pod.Creation) points.OrderInput {
	in := points.OrderInput{
		Namespace: c.Namespace, Name: c.Pod.Name, Labels: maps.Clone(c.Pod.Labels),
		Annotation: c.Pod.Annotations[kruise.ContainerLaunchPriorityKey], Containers: []points.Container{},
		RestartPolicy: string(cmp.Or(c.Pod.Spec.RestartPolicy, corev1.RestartPolicyAlways)),
	}
	if in.Name == "" {
		in.Name = c.Pod.GenerateName
	}
	inPlace := ""
	if owner := metav1.GetControllerOfNoCopy(c.Pod); owner != nil {
		group, _ := schema.ParseGroupVersion(owner.APIVersion) // an invalid version has no group
		in.Owner = &points.Owner{Group: group.Group, Kind: owner.Kind}
		if group.Group == kruise.GroupVersion.Group {
			inPlace = "the " + owner.Kind + " may update it in place"
		}
	}
	for i := range c.Pod.Spec.Containers {
		own := &c.Pod.Spec.Containers[i]
		container := containerOf(own)
		container.Bound = cmp.Or(inPlace, whyNotInitContainer(c.Pod, own))
		in.Containers = append(in.Containers, container)
	}
	if text := strings.TrimSpace(in.Annotation); strings.HasPrefix(text, "{") {
		in.Places, in.Fault = decodePriorities(text, in.Containers)
	}
	return in
}

// whyNotInitContainer says why a container cannot become an init container: later steps search for it among the containers, or it sets
// its own restart policy.
func whyNotInitContainer(p *corev1.Pod, own *corev1.Container) string {
	switch {
	case podmeta.IsInjected(own):
		return "its SidecarSet may update it in place"
	case own.RestartPolicy != nil || len(own.RestartPolicyRules) > 0:
		return "it has a restart policy of its own"
	case own.LivenessProbe != nil && p.Annotations[kruise.UsingEnhancedLivenessKey] != "":
		return "the node agent may run its liveness probe"
	}
	return ""
}

func containerOf(own *corev1.Container) points.Container {
	out := points.Container{
		Name: own.Name, Image: own.Image, Readiness: own.ReadinessProbe != nil, Startup: own.StartupProbe != nil,
		Ports: slices.ContainsFunc(own.Ports, func(p corev1.ContainerPort) bool { return p.Name != "" || p.HostPort != 0 }),
	}
	for _, env := range own.Env {
		if env.Name != kruise.ContainerLaunchPriorityEnv {
			continue
		}
		priority, err := strconv.ParseInt(env.Value, 10, 64)
		if err != nil {
			out.Fault = fmt.Sprintf("container %s: env %s: %v", own.Name, kruise.ContainerLaunchPriorityEnv, err)
			continue
		}
		out.Priority, out.Fault = &priority, ""
	}
	return out
}

// decodePriorities returns the priorities in the annotation, and the error in it.
func decodePriorities(text string, containers []points.Container) (map[string]int64, string) {
	short, err := annotation.Decode[map[string]int32](kruise.ContainerLaunchPriorityKey, text)
	if err != nil {
		return nil, fmt.Sprintf("annotation %s: want Ordered, or a JSON object of containers and whole numbers: %v", kruise.ContainerLaunchPriorityKey, err)
	}
	out := map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(short)) {
		if !slices.ContainsFunc(containers, func(c points.Container) bool { return c.Name == name }) {
			return nil, fmt.Sprintf("annotation %s: the pod has no container %q", kruise.ContainerLaunchPriorityKey, name)
		}
		out[name] = int64(short[name])
	}
	return out, ""
}
