// SPDX-License-Identifier: Apache-2.0

package podreadiness

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

func TestNoFailedCallLeavesAReadinessGateClosed(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "u"}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}
	faultinjection.Scenario{
		Applies: true,
		Objects: []client.Object{pod},
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return &Reconciler{reconcile.Deps{Client: e.Client, Events: e.Events, Now: e.Clock}}
		},
		Requests: faultinjection.RequestFor(pod),
	}.Run(t)
}

// A pod says that its readiness gate cannot be opened: it would never be ready without a word.
func TestAReadinessGateThatCannotBeOpenedIsTold(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "u"}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}
	c := fake.NewClientBuilder().WithObjects(pod).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return errors.New("a webhook refuses it")
		},
	}).Build()
	events := record.NewFakeRecorder(9)
	r := &Reconciler{reconcile.Deps{Client: c, Events: events, Now: time.Now}}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err == nil || len(events.Events) != 1 {
		t.Errorf("%d events tell of %v", len(events.Events), err)
	}
}

func TestAPodTellsThatItsReadinessGateCannotBeOpenedWhileItLasts(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "u"}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}
	faultinjection.Scenario{
		Applies: true,
		Objects: []client.Object{pod},
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return &Reconciler{reconcile.Deps{Client: e.Client, Events: e.Events, Now: e.Clock}}
		},
		Requests: faultinjection.RequestFor(pod),
	}.RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Verb == "apply" },
		Tells:  "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(pod), pod))
			if len(pod.Status.Conditions) != 1 {
				return "the gate is closed"
			}
			return ""
		},
	})
}
