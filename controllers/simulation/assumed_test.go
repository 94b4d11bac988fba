// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node that a dump does not have is neither missing, which would hold its pods for ever, nor cordoned.
func TestNodesThatAStateDoesNotHaveAreAssumed(t *testing.T) {
	on := func(node string) *corev1.Pod { return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}} }
	begin := time.Unix(1_800_000_000, 0)
	got := assumeNodes(ClusterState{
		Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}, Pods: []*corev1.Pod{on("n1"), on("n2"), on(""), on("n2")},
	}, begin)
	var names []string
	for _, n := range got {
		names = append(names, n.Name)
		if n.Spec.Unschedulable || n.Status.Conditions[0].Status != corev1.ConditionTrue || !n.CreationTimestamp.Time.Equal(begin) {
			t.Errorf("%s is %+v", n.Name, n)
		}
	}
	if want := []string{unnamedNode, "n2"}; !slices.Equal(names, want) {
		t.Errorf("assumed are %v, want %v", names, want)
	}
}
