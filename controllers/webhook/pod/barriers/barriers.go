// SPDX-License-Identifier: Apache-2.0

// Package barriers keeps containers of new pods from starting before others (CLP-01): each has an env whose value is in a
// ConfigMap, and a kubelet starts no container whose env it cannot read. Policies decide the order.
package barriers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/launchpriority"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/match"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/launchpriority"
)

// declares is true of pods that declare an order. What SidecarSets add declares one too: where there are any, all pods are sent.
const declares = "'" + kruise.ContainerLaunchPriorityKey + "' in object.metadata.?annotations.orValue({}) || " +
	"object.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.name == '" + kruise.ContainerLaunchPriorityEnv + "'))"

// New makes the step.
func New(e *engine.Engine) pod.MutatingStep {
	return pod.MutatingStep{
		Place: pod.LaunchPriority, Name: "ordering the start of containers",
		Match:  match.Created{Name: "barriers", Conditions: []admissionv1.MatchCondition{{Name: "declares-an-order", Expression: declares}}},
		Mutate: func(ctx context.Context, c *pod.Creation) (bool, error) { return mutate(ctx, e, c) },
	}
}

func mutate(ctx context.Context, e *engine.Engine, c *pod.Creation) (bool, error) {
	in := inputOf(c)
	point, subject := points.OrderPoint(), decision.Subject{Kind: "Pod", Namespace: c.Namespace, Name: in.Name}
	if !declared(&in) && !e.Snapshot().Extended(point.Name, subject) {
		return false, nil
	}
	out, _ := engine.Decide(ctx, e, point, subject, in)
	if len(out.Refuse) > 0 {
		messages := make([]string, len(out.Refuse))
		for i, r := range out.Refuse {
			messages[i] = fmt.Sprintf("%s (%s)", r.Message, r.Rule)
		}
		return false, errors.New(strings.Join(messages, "; "))
	}
	if len(out.Priorities) == 0 {
		return false, nil
	}
	if c.Pod.Name == "" { // the ConfigMap is named after the pod
		c.Pod.Name = nameFor(c.Pod.GenerateName)
	}
	for i := range c.Pod.Spec.Containers {
		own := &c.Pod.Spec.Containers[i]
		own.Env = append(
			slices.DeleteFunc(own.Env, func(e corev1.EnvVar) bool { return e.Name == kruise.ContainerLaunchBarrierEnv }),
			launchpriority.Barrier(c.Pod.Name, out.Priorities[own.Name]))
	}
	return true, nil
}

// nameFor is a name as API servers make them, which they do only after the webhooks.
func nameFor(prefix string) string {
	const random, longest = 5, 63
	return prefix[:min(len(prefix), longest-random)] + rand.String(random)
}

func declared(in *points.OrderInput) bool {
	return in.Annotation != "" || slices.ContainsFunc(in.Containers, func(c points.Container) bool { return c.Priority != nil || c.Fault != "" })
}

func inputOf(c *pod.Creation) points.OrderInput {
	in := points.OrderInput{
		Namespace: c.Namespace, Name: c.Pod.Name, Labels: maps.Clone(c.Pod.Labels),
		Annotation: c.Pod.Annotations[kruise.ContainerLaunchPriorityKey], Containers: []points.Container{},
	}
	if in.Name == "" {
		in.Name = c.Pod.GenerateName
	}
	for i := range c.Pod.Spec.Containers {
		in.Containers = append(in.Containers, containerOf(&c.Pod.Spec.Containers[i]))
	}
	if text := strings.TrimSpace(in.Annotation); strings.HasPrefix(text, "{") {
		in.Places, in.Fault = places(text, in.Containers)
	}
	return in
}

func containerOf(own *corev1.Container) points.Container {
	out := points.Container{Name: own.Name, Image: own.Image}
	for _, env := range own.Env {
		if env.Name != kruise.ContainerLaunchPriorityEnv {
			continue
		}
		priority, err := strconv.ParseInt(env.Value, 10, 32)
		if err != nil {
			out.Fault = fmt.Sprintf("container %s: env %s: %v", own.Name, kruise.ContainerLaunchPriorityEnv, err)
			continue
		}
		out.Priority, out.Fault = &priority, ""
	}
	return out
}

// places are those that the annotation has for containers, and what is wrong with it.
func places(text string, containers []points.Container) (map[string]int64, string) {
	short := map[string]int32{}
	if err := json.Unmarshal([]byte(text), &short); err != nil {
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
