// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var daemonSet = kind{
	native:   fmt.Sprintf(daemonManifest, "apps/v1"),
	advanced: fmt.Sprintf(daemonManifest, "apps.kruise.io/v1beta1"),
	see:      seeDaemonSet,
}

const daemonManifest = `
apiVersion: %s
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "app:v1"}]
`

// seeDaemonSet has the pods by their nodes, and what the status says.
func seeDaemonSet(ctx context.Context, o *side) (string, error) {
	pods, err := o.describe(ctx)
	if err != nil {
		return "", err
	}
	counts, err := o.status(ctx, "desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "numberMisscheduled")
	if err != nil {
		return "", err
	}
	return pods + "; status " + counts, nil
}

// onNode is an act on a node, which happens to it once: the two sides share their nodes.
func onNode(i int, act func(context.Context, client.Client, *corev1.Node) error) func(context.Context, *side) error {
	return func(ctx context.Context, o *side) error {
		node := &corev1.Node{}
		if err := o.c.Get(ctx, client.ObjectKey{Name: o.nodes[i]}, node); err != nil {
			return client.IgnoreNotFound(err)
		}
		return act(ctx, o.c, node)
	}
}

func patchNode(i int, patch string) func(context.Context, *side) error {
	return onNode(i, func(ctx context.Context, c client.Client, node *corev1.Node) error {
		return c.Patch(ctx, node, client.RawPatch(mergePatch, []byte(patch)))
	})
}

func taint(i int, effect corev1.TaintEffect) func(context.Context, *side) error {
	return patchNode(i, fmt.Sprintf(`{"spec": {"taints": [{"key": "example.com/away", "effect": %q}]}}`, effect))
}

func untaint(i int) func(context.Context, *side) error {
	return patchNode(i, `{"spec": {"taints": null}}`)
}

func deleteOnNode(i int) func(context.Context, *side) error {
	return func(ctx context.Context, o *side) error { return o.delete(ctx, o.nodes[i]) }
}

// fail has the pod of a node end in failure.
func fail(i int) func(context.Context, *side) error {
	return func(ctx context.Context, o *side) error {
		pod, err := o.pod(ctx, o.nodes[i])
		if err != nil {
			return err
		}
		return o.c.Status().Patch(ctx, pod, client.RawPatch(mergePatch, []byte(`{"status": {"phase": "Failed", "reason": "Test"}}`)))
	}
}

// replaceNode deletes a node, with what kubelets said of it, and puts another one of its name there.
func replaceNode(i int) func(context.Context, *side) error {
	return onNode(i, func(ctx context.Context, c client.Client, node *corev1.Node) error {
		if node.Labels["replaced"] != "" {
			return nil
		}
		if err := c.Delete(ctx, node); err != nil {
			return err
		}
		next := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, Annotations: node.Annotations},
			Spec:       corev1.NodeSpec{PodCIDR: node.Spec.PodCIDR}, Status: node.Status,
		}
		next.Labels["replaced"] = "true"
		return c.Create(ctx, next)
	})
}

func rolling(what, amount string) string {
	return fmt.Sprintf(`{"op": "add", "path": "/spec/updateStrategy", "value": {"type": "RollingUpdate", "rollingUpdate": {%q: %s}}}`, what, amount)
}

const (
	onAll   = "node-0=v1 node-1=v1 node-2=v1; status 3/3/3/0"
	updated = "node-0=v2 node-1=v2 node-2=v2; status 3/3/3/0"
)

func daemonSets() []scenario {
	return []scenario{
		{name: "nodes that are labelled later get a pod, and lose it with the label", unordered: true, steps: []step{
			{does: "created", want: onAll},
			{does: "a label goes", act: patchNode(1, `{"metadata": {"labels": {"scenario": "none"}}}`), want: "node-0=v1 node-2=v1; status 2/2/2/0"},
		}},
		// The native one counts anew when it has a pod to create or to delete.
		{name: "a taint without effect on running pods keeps new ones away", unordered: true, steps: []step{
			{does: "created", want: onAll},
			{does: "a node is tainted", act: taint(0, corev1.TaintEffectNoSchedule), want: onAll, advanced: "node-0=v1 node-1=v1 node-2=v1; status 2/2/2/1"},
			{does: "its pod is deleted", act: deleteOnNode(0), want: "node-1=v1 node-2=v1; status 2/2/2/0"},
			{does: "the taint goes", act: untaint(0), want: onAll},
		}},
		{name: "a taint that executes removes the pod", unordered: true, steps: []step{
			{does: "created", want: onAll},
			{does: "a node is tainted", act: taint(2, corev1.TaintEffectNoExecute), want: "node-0=v1 node-1=v1; status 2/2/2/0"},
			{does: "the taint goes", act: untaint(2), want: onAll},
		}},
		{name: "a tolerated taint is none", edit: list(`{"op": "add", "path": "/spec/template/spec/tolerations", "value": [{"operator": "Exists"}]}`), unordered: true, steps: []step{
			{does: "created", want: onAll},
			{does: "a node is tainted", act: taint(0, corev1.TaintEffectNoExecute), want: onAll},
			{does: "its pod is deleted", act: deleteOnNode(0), want: onAll},
		}},
		{name: "a cordoned node keeps its pod, and gets it again", unordered: true, steps: []step{
			{does: "created", want: onAll},
			{does: "a node is cordoned", act: patchNode(1, `{"spec": {"unschedulable": true}}`), want: onAll},
			{does: "its pod is deleted", act: deleteOnNode(1), want: onAll},
		}},
		{name: "a node that is replaced gets a new pod", unordered: true, steps: []step{
			{does: "created", want: onAll},
			{does: "a node is replaced", act: replaceNode(2), want: onAll},
		}},
		{name: "one node after the other is updated", edit: list(rolling("maxUnavailable", "1")), steps: []step{
			{does: "created", want: onAll},
			{does: "updated", act: image("v2"), want: updated},
		}},
		{name: "an update stops at a pod that is not ready", anyNode: true, edit: list(rolling("maxUnavailable", "1")), unordered: true, steps: []step{
			{does: "created", want: "v1 v1 v1; status 3/3/3/0"},
			{does: "updated to what never is ready", act: gated("v2"), want: "v1 v1 v2(unready); status 3/2/1/0", still: 2 * time.Second},
			{does: "updated again", act: ungated("v3"), want: "v3 v3 v3; status 3/3/3/0"},
		}},
		{name: "a surge creates before it deletes", edit: list(`{"op": "add", "path": "/spec/updateStrategy", "value": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}}`), steps: []step{
			{does: "created", want: onAll},
			{does: "updated", act: image("v2"), want: updated},
		}},
		{name: "OnDelete updates what a user deletes", edit: list(onDelete), unordered: true, steps: []step{
			{does: "created", want: onAll},
			{does: "updated", act: image("v2"), want: "node-0=v1 node-1=v1 node-2=v1; status 3/3/0/0"},
			{does: "a pod is deleted", act: deleteOnNode(1), want: "node-0=v1 node-1=v2 node-2=v1; status 3/3/1/0"},
		}},
		{name: "a pod that failed is replaced", unordered: true, steps: []step{
			{does: "created", want: onAll},
			{does: "a pod fails", act: fail(0), want: onAll},
		}},
	}
}

// status joins numbers of the status; that of an object whose generation is not observed is none.
func (o *side) status(ctx context.Context, fields ...string) (string, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(o.object.GroupVersionKind())
	if err := o.c.Get(ctx, client.ObjectKeyFromObject(o.object), object); err != nil {
		return "", fmt.Errorf("reading the object: %w", err)
	}
	seen, _, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err != nil {
		return "", fmt.Errorf("reading the status: %w", err)
	}
	if seen != object.GetGeneration() {
		return "of an earlier generation", nil
	}
	text := ""
	for _, field := range fields {
		n, _, err := unstructured.NestedInt64(object.Object, "status", field)
		if err != nil {
			return "", fmt.Errorf("reading the status: %w", err)
		}
		text += fmt.Sprintf("/%d", n)
	}
	return text[1:], nil
}
