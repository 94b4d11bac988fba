// SPDX-License-Identifier: Apache-2.0

package podreadiness

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

func TestNoFailedCallLeavesAReadinessGateClosed(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "u"}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}
	faultinjection.Scenario{
		Applies: true,
		Objects: []client.Object{pod},
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return &Reconciler{Client: e.Client, Now: e.Clock}
		},
		Requests: faultinjection.RequestFor(pod),
	}.Run(t)
}
