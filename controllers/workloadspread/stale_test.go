// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// The pod that takes the place of one that goes is of the same subset, though the cache of the replica that lets it in does not have
// the record yet, or does not know yet that a subset has no room.
func TestAPodGoesByRecordsThatTheCacheDoesNotHave(t *testing.T) {
	w := newWorld(t, nil)
	pods := w.create(3, true)
	w.reconcile()
	stale := w.get()
	if err := w.book.Delete(t.Context(), stale, pods[0], spread.MarkOf(pods[0])); err != nil {
		t.Fatal(err)
	}
	if at, err := w.book.Create(t.Context(), stale, w.pod(), false); err != nil || at == nil || at.Subset.Name != "a" {
		t.Errorf("the pod goes to %+v, %v, want a", at, err)
	}
	adaptive := newWorld(t, func(s *kruise.WorkloadSpread) {
		s.Spec.Subsets[0].MaxReplicas = nil
		s.Spec.ScheduleStrategy = kruise.WorkloadSpreadScheduleStrategy{
			Type: kruise.AdaptiveWorkloadSpreadScheduleStrategyType, Adaptive: &kruise.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](10)},
		}
	})
	waits := adaptive.create(1, false)[0]
	waits.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if err := adaptive.api.Status().Update(t.Context(), waits); err != nil {
		t.Fatal(err)
	}
	stale = adaptive.get()
	adaptive.now = adaptive.now.Add(11 * time.Second)
	adaptive.reconcile()
	if at, err := adaptive.book.Create(t.Context(), stale, adaptive.pod(), false); err != nil || at == nil || at.Subset.Name != "b" {
		t.Errorf("the pod goes to %+v, %v, want b", at, err)
	}
}

// A pod that no subset has room for by the replicas in the cache goes by those that the workload has.
func TestAPodGoesByReplicasThatTheCacheDoesNotHave(t *testing.T) {
	for cached, want := range map[int]map[string]int{0: {"a": 4, "b": 6}, 10: {"a": 8, "b": 12}} {
		w := newWorld(t, func(s *kruise.WorkloadSpread) {
			s.Spec.Subsets[0].MaxReplicas, s.Spec.Subsets[1].MaxReplicas = ptr.To(intstr.FromString("40%")), ptr.To(intstr.FromString("60%"))
		})
		w.create(cached, true)
		w.reconcile()
		behind := interceptor.NewClient(w.api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if set, ok := o.(*kruise.CloneSet); ok {
				set.Spec.Replicas = ptr.To(int32(cached))
			}
			return err
		}})
		w.targets = spread.NewTargets(behind, w.api, scale.NewFinder(behind, nil), "kruise-system", func() time.Time { return w.now })
		w.book = w.newBook()
		set := &kruise.CloneSet{}
		if err := w.api.Get(t.Context(), w.key, set); err != nil {
			t.Fatal(err)
		}
		set.Spec.Replicas = ptr.To(int32(cached + 10))
		if err := w.api.Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		w.create(10, true)
		if got := w.subsets(); !maps.Equal(got, want) {
			t.Errorf("by %d replicas in the cache the subsets have %v, want %v", cached, got, want)
		}
	}
}

// Pods that a budget keeps from being deleted do not keep the others from their deletion costs.
func TestCostsAreWrittenBesideADeletionThatIsRefused(t *testing.T) {
	w := newWorld(t, func(s *kruise.WorkloadSpread) {
		s.Spec.ScheduleStrategy = kruise.WorkloadSpreadScheduleStrategy{
			Type: kruise.AdaptiveWorkloadSpreadScheduleStrategyType, Adaptive: &kruise.AdaptiveWorkloadSpreadStrategy{RescheduleCriticalSeconds: ptr.To[int32](10)},
		}
	})
	refused := errors.New("a budget refuses it")
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refused }})
	waits := w.create(1, false)[0]
	waits.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if err := w.api.Status().Update(t.Context(), waits); err != nil {
		t.Fatal(err)
	}
	other := w.pod()
	other.Spec.NodeName, other.Status.Phase = "node-b", corev1.PodRunning
	metav1.SetMetaDataAnnotation(&other.ObjectMeta, kruise.MatchedWorkloadSpreadKey, `{"name":"web","subset":"b"}`)
	if err := w.api.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(11 * time.Second)
	res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key})
	if !errors.Is(err, refused) || res.RequeueAfter == 0 {
		t.Errorf("it is looked at again after %s, %v", res.RequeueAfter, err)
	}
	if !slices.Contains(w.writes, "patch "+other.Name) {
		t.Errorf("the cost of the other pod is not written: %v", w.writes)
	}
}
