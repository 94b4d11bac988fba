// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/batch"
	"github.com/regatta-sh/regatta/controllers/workload/jobcondition"
)

// Reasons of the condition PausedByFailure.
const (
	reasonFailedPod = "FailedPod"
	reasonSeen      = "Seen"
)

// reconcilePause sets the phase by spec.paused and by failurePolicy Pause. A failed pod pauses the job
// once: a user who sets spec.paused has seen the failure, and the job continues when spec.paused is
// unset. The controller never changes the spec.
func (r *Reconciler) reconcilePause(ctx context.Context, s *state, next *change) error {
	byFailure := jobcondition.Find(next.status.Conditions, kruise.BroadcastJobPausedByFailure)
	was := next.status.Phase == kruise.BroadcastJobPhasePaused
	if s.job.Spec.Paused {
		next.status.Phase = kruise.BroadcastJobPhasePaused
		if byFailure == nil || byFailure.Reason != reasonFailedPod {
			return nil
		}
		if err := r.markFailuresSeen(ctx, s); err != nil {
			return err
		}
		next.setCondition(kruise.BroadcastJobPausedByFailure, reasonSeen, "The job goes on when spec.paused is false.")
		return nil
	}
	fresh := unseenFailedPods(s)
	if s.job.Spec.FailurePolicy.Type == kruise.FailurePolicyTypePause && len(fresh) > 0 {
		next.status.Phase = kruise.BroadcastJobPhasePaused
		message := fmt.Sprintf("Pod %s has failed, one of %d. To go on, delete the failed pods, and their nodes get new ones; or set spec.paused to true, and then to false; or set spec.failurePolicy.type to Continue.", fresh[0].Name, len(fresh))
		if next.setCondition(kruise.BroadcastJobPausedByFailure, reasonFailedPod, message) {
			next.addEvent(corev1.EventTypeWarning, kruise.BroadcastJobPausedReason, "job is paused, due to failed pod")
		}
		return nil
	}
	next.removeCondition(kruise.BroadcastJobPausedByFailure)
	if was {
		next.status.Phase = kruise.BroadcastJobPhaseRunning
		next.addEvent(corev1.EventTypeNormal, kruise.BroadcastJobContinueReason, "continue to process job")
	}
	return nil
}

// unseenFailedPods are the failed pods that pause a job.
func unseenFailedPods(s *state) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(s.failed), func(p *corev1.Pod) bool { return p.Annotations[kruise.FailureSeenKey] != "" })
}

// markFailuresSeen marks the pods that have failed so far.
func (r *Reconciler) markFailuresSeen(ctx context.Context, s *state) error {
	var acts []func() error
	for _, pod := range unseenFailedPods(s) {
		acts = append(acts, func() error {
			marked := pod.DeepCopy()
			if marked.Annotations == nil {
				marked.Annotations = map[string]string{}
			}
			marked.Annotations[kruise.FailureSeenKey] = "true"
			err := r.Client.Patch(ctx, marked, client.MergeFrom(pod))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("marking failed pod %s as seen: %w", pod.Name, err)
			}
			if err == nil {
				r.overlay.RecordPatched(s.job.UID, marked)
			}
			return nil
		})
	}
	return batch.RunParallel(r.writes, acts)
}
