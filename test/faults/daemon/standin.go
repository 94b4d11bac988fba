// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StandIn makes pods that look like the agents of nodes and do nothing: managers ask for an
// update in place of env only where the pod of an agent is. The DaemonSet of the chart does not
// adopt them.
func StandIn(ctx context.Context, c client.Client, nodes ...string) error {
	labels := map[string]string{"control-plane": "daemon", "faults.regatta.sh/stand-in": "true"}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stand-in"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec = corev1.PodSpec{
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes,
			}}}},
		}}},
		Containers: []corev1.Container{{Name: "nothing", Image: "registry.k8s.io/pause:3.8"}},
	}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, set)); err != nil {
		return fmt.Errorf("making pods in place of agents: %w", err)
	}
	return nil
}
