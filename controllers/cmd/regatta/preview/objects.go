// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// readFleet reads the objects that a rollout in a namespace depends on: those that dumps of a fleet have.
func (r objectReader) readFleet(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, resource := range []schema.GroupVersionResource{
		kruise.GroupVersion.WithResource("clonesets"),
		policy.GroupVersion.WithResource("podunavailablebudgets"),
		corev1.SchemeGroupVersion.WithResource("pods"),
		corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
		appsv1.SchemeGroupVersion.WithResource("controllerrevisions"),
		appsv1.SchemeGroupVersion.WithResource("deployments"),
		appsv1.SchemeGroupVersion.WithResource("replicasets"),
		appsv1.SchemeGroupVersion.WithResource("statefulsets"),
	} {
		found, err := r.listAll(ctx, resource, namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	nodes, err := r.listAll(ctx, corev1.SchemeGroupVersion.WithResource("nodes"), "")
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintln(r.notes, "warning: you may not list nodes, so the preview knows no zones, and each node counts as ready and as new")
	case err != nil:
		return nil, err
	}
	out = append(out, nodes...)
	own, err := r.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintf(r.notes, "warning: you may not read namespace %s, so the preview knows no labels of it\n", namespace)
		return out, nil
	case err != nil:
		return nil, fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	return append(out, own), nil
}

// listAll reads all objects of a resource, of all namespaces if namespace is empty. A resource that the cluster
// does not have has no objects.
func (r objectReader) listAll(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]*unstructured.Unstructured, error) {
	found, err := edit.ListAll(ctx, r.client.Resource(resource).Namespace(namespace), "")
	switch {
	case apierrors.IsNotFound(err):
		fmt.Fprintf(r.notes, "warning: the cluster has no %s, so the preview knows none\n", resource)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
	}
	return found, nil
}

// readyTime is how long a pod took from its start on a node to being ready, if it shows that.
func readyTime(pod *corev1.Pod) (time.Duration, bool) {
	if pod.Status.StartTime == nil {
		return 0, false
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.RestartCount > 0 {
			return 0, false
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			d := c.LastTransitionTime.Sub(pod.Status.StartTime.Time)
			return d, d >= 0
		}
	}
	return 0, false
}
