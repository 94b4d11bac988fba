// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/workload/nodes"
)

func pod(namespace, name, node, label string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"control-plane": label}}}
	p.Spec.NodeName = node
	return p
}

func TestWhichNodesHaveAnAgent(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	agent := pod("kruise-system", "daemon-1", "n1", "daemon")
	c := fake.NewClientBuilder().WithIndex(&corev1.Pod{}, nodes.Index, nodes.IndexValue).
		WithObjects(agent, pod("kruise-system", "manager", "n2", "controller-manager"), pod("shop", "daemon-2", "n2", "daemon")).Build()
	d := NewDeployed(c, "kruise-system", func() time.Time { return now })
	want := func(node string, there bool, left time.Duration) {
		t.Helper()
		if got, wait, err := d.HasAgent(t.Context(), node); err != nil || got != there || max(wait, 0) != left {
			t.Errorf("%s: there %t, %s left, %v; want %t and %s", node, got, wait, err, there, left)
		}
	}
	want("n1", true, 0)
	want("", true, 0)
	want("n2", false, Grace)
	now = now.Add(15 * time.Second)
	want("n2", false, 5*time.Second)
	if err := c.Delete(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	want("n1", false, Grace) // it is being replaced
	now = now.Add(10 * time.Second)
	want("n2", false, 0)
	agent.ResourceVersion = ""
	if err := c.Create(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	want("n1", true, 0)
	now = now.Add(time.Hour)
	if err := c.Delete(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	want("n1", false, Grace) // the time begins anew
}
