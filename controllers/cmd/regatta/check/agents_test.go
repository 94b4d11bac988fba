// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
)

// Agents may be in a namespace of their own, which a variable of the manager has.
func TestAgentsInANamespaceOfTheirOwn(t *testing.T) {
	i := newUnit(t)
	known, err := preflight.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "a", Labels: map[string]string{"control-plane": "daemon"}}, Spec: corev1.PodSpec{NodeName: "n1"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	i.Client = fake.NewClientBuilder().WithScheme(known).WithObjects(
		pod, newNode("n1", "amd64", "containerd://2.1.0", "v1.36.0"), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: agentName}},
		&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: "few"},
			Status:     corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}, Used: corev1.ResourceList{"pods": resource.MustParse("1")}},
		}).Build()
	i.manager.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Env: []corev1.EnvVar{{Name: "DAEMON_NAMESPACE", Value: "agents"}}}}
	i.checkAgents(t.Context(), i.findAgents(t.Context()))
	wants(t, i.report, "Fine | agents | DaemonSet agents/kruise-daemon | status.numberReady | 1 nodes have an agent")
	i.report.sortFindings()
	if i.report.Result != Fine {
		t.Errorf("it says %v", i.report.Findings)
	}
	i.checkQuotas(t.Context())
	wants(t, i.report, "Fine | quotas | ResourceQuotas kruise-system", "Warns | quotas | ResourceQuota agents/few | status.used pods | 1 of 1 are used")
}
