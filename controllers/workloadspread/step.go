// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/controllers/workload/statusthrottle"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
)

// reconcileRound is one round of a spread.
type reconcileRound struct {
	r      *Reconciler
	w      *kruise.WorkloadSpread
	now    time.Time
	target *spread.Target
	limits []*int
	// pods are the pods of the workload that the filter selects. part has the index of the subset of each; -1 for
	// none.
	pods  []*corev1.Pod
	part  map[types.UID]int
	stuck []*corev1.Pod
	// nowhere are the subsets with waiting pods that select no node.
	nowhere []string
	// late are the subsets with pods that have found no node for long, with the number of these pods.
	late []string
	// unknown counts pods of subsets that the spec does not have, by subset.
	unknown map[string]int
	status  kruise.WorkloadSpreadStatus
	// recovered are subsets that get pods again.
	recovered []string
	again     time.Duration
}

// requeueWithin requeues the spread after a delay, unless it is requeued earlier.
func (t *reconcileRound) requeueWithin(after time.Duration) {
	t.again = requeue.EarliestDelay(t.again, max(after, 0))
}

// reconcileSpread runs one round. It writes the status before it deletes pods, so that the pods that replace
// them go to other subsets.
func (r *Reconciler) reconcileSpread(ctx context.Context, w *kruise.WorkloadSpread) (time.Duration, error) {
	t := &reconcileRound{r: r, w: w, now: r.Now(), part: map[types.UID]int{}, unknown: map[string]int{}}
	var err error
	if t.target, err = r.targets.ReadTarget(ctx, w); err != nil {
		return 0, fmt.Errorf("reading the workload of WorkloadSpread %s: %w", client.ObjectKeyFromObject(w), err)
	}
	replicas := 0
	if t.target != nil {
		replicas = t.target.Replicas
		if err := t.gatherPods(ctx); err != nil {
			return 0, err
		}
	}
	for i := range w.Spec.Subsets {
		limit, err := spread.MaxPods(&w.Spec.Subsets[i], replicas)
		if err != nil { // the status stays as it is (WS-06)
			return 0, err
		}
		t.limits = append(t.limits, limit)
	}
	marks, err := t.classifyPods(ctx)
	if err != nil {
		return 0, err
	}
	if err := t.findWaitingSubsets(ctx); err != nil {
		return 0, err
	}
	// If a pod cannot be written, the other pods still get their marks and costs, and the status its counts.
	marked := batch.RunParallel(r.writes, marks)
	t.computeStatus()
	if err := t.updateStatus(ctx); err != nil {
		return t.again, message.JoinErrors(marked, err)
	}
	t.storeExplanation()
	return t.again, message.JoinErrors(marked, t.deleteStuckPods(ctx), t.patchDeletionCosts(ctx))
}

var errStale = errors.New("its spec is not the one that was read")

// computeStatus computes the status from the pods and from the records of pods that the cache does not show.
func (t *reconcileRound) computeStatus() {
	t.status, t.stuck, t.recovered = *t.w.Status.DeepCopy(), nil, nil
	t.countPods()
	t.updateSchedulable()
	t.setPlacingCondition()
	kstatus.SetConditions(&t.status, t.summarizePlacing(), t.w.Generation, t.now)
}

// updateStatus writes the status if it changed. It computes it again from the status in the API server, which may have records
// of more pods. If only counts change, it writes at most once per StatusInterval: the records keep the counts
// correct meanwhile.
func (t *reconcileRound) updateStatus(ctx context.Context) error {
	if isSameStatus(&t.w.Status, &t.status) {
		return nil
	}
	known := t.r.memory.GetOrCreate(t.w)
	if wait := statusthrottle.WriteDelay(&t.w.Status, &t.status, t.r.StatusInterval, t.now.Sub(known.written), "creatingPods", "deletingPods"); wait > 0 {
		t.requeueWithin(wait)
		return nil
	}
	next, stale := *t, true
	var stored *kruise.WorkloadSpread
	err := t.r.book.ChangeStatus(ctx, t.w, func(now *kruise.WorkloadSpread) bool {
		stored = now
		if stale = now.Generation != t.w.Generation; stale {
			return false
		}
		next.w = now.DeepCopy()
		next.computeStatus()
		if isSameStatus(&now.Status, &next.status) {
			return false
		}
		now.Status = *next.status.DeepCopy()
		return true
	})
	if err == nil && stale { // the spec has changed: the next round counts again
		err = apierrors.NewConflict(kruise.GroupVersion.WithResource("workloadspreads").GroupResource(), t.w.Name, errStale)
	}
	if err != nil {
		return fmt.Errorf("writing the status of WorkloadSpread %s: %w", client.ObjectKeyFromObject(t.w), err)
	}
	t.r.RecordStatus(stored)
	*t = next
	known.written = t.now
	for _, name := range t.recovered {
		t.r.Events.Eventf(t.w, corev1.EventTypeNormal, kruise.WorkloadSpreadRecoverSchedulableReason, "Subset %s of WorkloadSpread %s/%s is recovered from unschedulable to schedulable",
			name, t.w.Namespace, t.w.Name)
	}
	return nil
}

// criticalDuration is how long a pod may find no node; 0 means without a limit.
func (t *reconcileRound) criticalDuration() time.Duration {
	s := &t.w.Spec.ScheduleStrategy
	if s.Type != kruise.AdaptiveWorkloadSpreadScheduleStrategyType || s.Adaptive == nil {
		return 0
	}
	return time.Duration(ptr.Deref(s.Adaptive.RescheduleCriticalSeconds, 0)) * time.Second
}

// deleteStuckPods deletes pods that found no node in time (WS-08), unless something holds them. The webhook of pods checks their
// budget.
func (t *reconcileRound) deleteStuckPods(ctx context.Context) error {
	stuck, err := t.notHeld(ctx)
	if err != nil {
		return err
	}
	acts := make([]func() error, len(stuck))
	for i, pod := range stuck {
		acts[i] = func() error {
			err := t.r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
			if client.IgnoreNotFound(err) != nil {
				t.r.recordEventOnce(t.w, kruise.WorkloadSpreadDeletePodFailedReason, string(pod.UID), fmt.Sprintf("Pod %s: %v", pod.Name, err))
				return fmt.Errorf("deleting pod %s, which finds no node: %w", pod.Name, err)
			}
			return nil
		}
	}
	return batch.RunParallel(t.r.writes, acts)
}

// findStuckPods finds the pods of a subset that find no node in time.
func (t *reconcileRound) findStuckPods(i int) (stuck []*corev1.Pod) {
	for _, pod := range t.pods {
		if t.part[pod.UID] != i || !availability.IsActive(pod) {
			continue
		}
		is, again := subset.IsUnschedulable(pod, t.criticalDuration(), t.now)
		if t.requeueWithin(again); is {
			stuck = append(stuck, pod)
		}
	}
	return stuck
}
