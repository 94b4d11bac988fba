// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// The time at which a pod that finds no node is late stands beside a status that cannot be written.
func TestALookThatFailsKeepsItsTimers(t *testing.T) {
	w := newWorld(t, func(s *kruise.WorkloadSpread) {
		s.Spec.ScheduleStrategy = kruise.WorkloadSpreadScheduleStrategy{
			Type: kruise.AdaptiveWorkloadSpreadScheduleStrategyType, Adaptive: &kruise.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](10)},
		}
	})
	pod := w.create(1, false)[0]
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if err := w.api.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	refused, api := errors.New("refused"), w.api
	w.api = interceptor.NewClient(api, interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return refused
		},
	})
	w.book = w.newBook()
	w.r = New(reconcile.Deps{Client: w.api, Events: w.events, Engine: w.engine, Rounds: w.rounds, Now: func() time.Time { return w.now }}, w.targets, w.book)
	res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key})
	if !errors.Is(err, refused) || res.RequeueAfter <= 0 || res.RequeueAfter > 11*time.Second {
		t.Errorf("it is looked at again after %s, want when its pod is late: %v", res.RequeueAfter, err)
	}
}
