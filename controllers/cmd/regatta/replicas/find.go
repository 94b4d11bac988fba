// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// label is that of the pods of the manager, in OpenKruise's chart and in ours.
const label = "control-plane=controller-manager"

// The port is found by its name in the pod, which charts/kruise gives it.
const (
	portName    = "decisions"
	defaultPort = 8443
)

// replicas are those that are to be asked now.
func (a *Asker) replicas(ctx context.Context) ([]*replica, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trust == nil {
		trust := authority{}
		if !a.flags.Insecure || len(a.flags.Endpoints) == 0 {
			trust = findAuthority(ctx, a.client)
		}
		a.trust = &trust
	}
	if a.now().Sub(a.listed) > relist {
		if err := a.list(ctx); err != nil {
			return nil, err
		}
		a.listed = a.now()
	}
	out := slices.Collect(maps.Values(a.known))
	slices.SortFunc(out, func(a, b *replica) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// list brings known up to date.
func (a *Asker) list(ctx context.Context) error {
	for _, e := range a.flags.Endpoints {
		if a.known[e] != nil {
			continue
		}
		r, err := a.endpoint(e)
		if err != nil {
			return err
		}
		a.known[e] = r
	}
	if len(a.flags.Endpoints) > 0 {
		return nil
	}
	pods, err := a.client.CoreV1().Pods(a.flags.Namespace).List(ctx, metav1.ListOptions{LabelSelector: label, FieldSelector: "status.phase=Running"})
	if err != nil {
		return forbidden(a.flags.Namespace, fmt.Errorf("finding the pods of the manager: %w", err))
	}
	found := map[string]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		found[string(pod.UID)] = true
		if a.known[string(pod.UID)] != nil {
			continue
		}
		r, err := a.pod(pod)
		if err != nil {
			return err
		}
		a.known[string(pod.UID)] = r
	}
	for uid, r := range a.known {
		if !found[uid] {
			r.close()
			delete(a.known, uid)
		}
	}
	if len(a.known) == 0 {
		return fmt.Errorf("finding the pods of the manager: none is running in namespace %s with the label %s; name another with --manager-namespace, or a manager elsewhere with --endpoint", a.flags.Namespace, label)
	}
	return nil
}

func portOf(pod *corev1.Pod) int32 {
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.Name == portName {
				return p.ContainerPort
			}
		}
	}
	return defaultPort
}
