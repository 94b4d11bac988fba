// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follow notes which pods are created and which are deleted, in the order of the API
// server. A pod is deleted when its deletion is asked for.
func (o *side) follow(ctx context.Context) error {
	pods, err := o.c.Watch(ctx, &corev1.PodList{}, client.InNamespace(o.namespace))
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	go func() {
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				o.note(event.Type, pod)
			}
		}
	}()
	return nil
}

func (o *side) note(event watch.EventType, pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	goes, known := o.seen[pod.UID]
	if !known {
		o.seen[pod.UID] = false
		o.events = append(o.events, "+"+o.called(pod)+"="+version(pod))
	}
	if !goes && (pod.DeletionTimestamp != nil || event == watch.Deleted) {
		o.seen[pod.UID] = true
		o.events = append(o.events, "-"+o.called(pod)+"="+version(pod))
	}
}

// called is what both sides call a pod: its name if that is not made up, else its node.
func (o *side) called(pod *corev1.Pod) string {
	if len(o.nodes) > 0 {
		return node(pod)
	}
	return pod.Name
}

// node is where a pod of a DaemonSet runs, or is to run.
func node(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				return strings.Join(field.Values, ",")
			}
		}
	}
	return ""
}

func version(pod *corev1.Pod) string {
	_, tag, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	return tag
}

// past is what happened so far. Both controllers may choose which node is next, so that
// nodes are called by the order in which their pods were deleted first.
func (o *side) past(unordered bool) []string {
	o.mu.Lock()
	out := slices.Clone(o.events)
	o.mu.Unlock()
	if len(o.nodes) > 0 {
		out = letters(out)
	}
	if unordered {
		slices.Sort(out)
	}
	return out
}

// letters replaces names of nodes by letters: a for the node where something happened first,
// after all of them got their first pod.
func letters(events []string) []string {
	began, names := map[string]bool{}, map[string]string{}
	var out []string
	for _, event := range events {
		name, tag, _ := strings.Cut(event[1:], "=")
		if !began[name] && event[0] == '+' {
			began[name] = true
			continue
		}
		if names[name] == "" {
			names[name] = string(rune('a' + len(names)))
		}
		out = append(out, event[:1]+names[name]+"="+tag)
	}
	return out
}

// describe is a line about all pods: name or node, version, and what is unusual of it.
func (o *side) describe(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if err := o.c.List(ctx, &pods, client.InNamespace(o.namespace)); err != nil {
		return "", fmt.Errorf("listing pods: %w", err)
	}
	var out []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		text := o.called(pod)
		if at := slices.Index(o.nodes, text); at >= 0 {
			text = fmt.Sprintf("node-%d", at)
		}
		text += "=" + version(pod)
		if o.anyNode {
			text = version(pod)
		}
		switch {
		case pod.DeletionTimestamp != nil:
			text += "(goes)"
		case pod.Status.Phase == corev1.PodFailed:
			text += "(failed)"
		case !ready(pod):
			text += "(unready)"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, " "), nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// edit applies a JSON patch to the object before it is created.
func (o *side) edit(patch string) error {
	if patch == "" {
		return nil
	}
	decoded, err := jsonpatch.DecodePatch([]byte(o.place(patch)))
	if err != nil {
		return fmt.Errorf("reading the edit: %w", err)
	}
	raw, err := json.Marshal(o.object.Object)
	if err != nil {
		return fmt.Errorf("writing the object: %w", err)
	}
	if raw, err = decoded.Apply(raw); err != nil {
		return fmt.Errorf("editing: %w", err)
	}
	return json.Unmarshal(raw, &o.object.Object)
}

// place has the paths of a JSON patch as the object has them.
func (o *side) place(patch string) string {
	if o.paths == nil {
		return patch
	}
	return o.paths.Replace(patch)
}

// change is a JSON patch of the object.
func change(patch string) func(context.Context, *side) error {
	return func(ctx context.Context, o *side) error {
		return o.c.Patch(ctx, o.object.DeepCopy(), client.RawPatch(jsonPatch, []byte(o.place(patch))))
	}
}

func image(tag string) func(context.Context, *side) error {
	return change(fmt.Sprintf(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:%s"}]`, tag))
}

// gated replaces the image, and gives pods a readiness gate that no controller opens, so
// that they are not ready.
func gated(tag string) func(context.Context, *side) error {
	return change(fmt.Sprintf(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:%s"},
		{"op": "add", "path": "/spec/template/spec/readinessGates", "value": [{"conditionType": "example.com/ok"}]}]`, tag))
}

// ungated replaces the image, and takes that gate away.
func ungated(tag string) func(context.Context, *side) error {
	return change(fmt.Sprintf(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "app:%s"},
		{"op": "remove", "path": "/spec/template/spec/readinessGates"}]`, tag))
}

func replicas(n int) func(context.Context, *side) error {
	return change(fmt.Sprintf(`[{"op": "replace", "path": "/spec/replicas", "value": %d}]`, n))
}

// pod finds a pod by its name, or by its node.
func (o *side) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := o.c.List(ctx, &pods, client.InNamespace(o.namespace)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		if o.called(&pods.Items[i]) == name {
			return &pods.Items[i], nil
		}
	}
	return nil, fmt.Errorf("there is no pod %s", name)
}

func (o *side) delete(ctx context.Context, name string) error {
	pod, err := o.pod(ctx, name)
	if err != nil {
		return err
	}
	return o.c.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
}

func deletePod(name string) func(context.Context, *side) error {
	return func(ctx context.Context, o *side) error { return o.delete(ctx, name) }
}

// open sets the condition of the gate of a pod.
func open(name string, status corev1.ConditionStatus) func(context.Context, *side) error {
	return func(ctx context.Context, o *side) error {
		pod, err := o.pod(ctx, name)
		if err != nil {
			return err
		}
		patch := fmt.Sprintf(`{"status": {"conditions": [{"type": "example.com/ok", "status": %q, "lastTransitionTime": %q}]}}`, status, time.Now().UTC().Format(time.RFC3339))
		return o.c.Status().Patch(ctx, pod, client.RawPatch("application/strategic-merge-patch+json", []byte(patch)))
	}
}
