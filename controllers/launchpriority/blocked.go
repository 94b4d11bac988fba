// SPDX-License-Identifier: Apache-2.0

package launchpriority

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

const (
	// BlockedCondition is the condition of a pod whose containers wait for a container that has failed for good.
	BlockedCondition corev1.PodConditionType = "ContainerLaunchBlocked"
	// ContainerFailedReason is the reason of the condition, and of the event that goes with it.
	ContainerFailedReason = "ContainerFailed"
)

// reportBlocked reports that containers never start, because one of a higher priority has failed and is not started again. If none of
// its other containers runs any more, the pod has failed, as if that container were an init container. Otherwise the pod would wait
// indefinitely, and no Job would replace it.
func (r *Reconciler) reportBlocked(ctx context.Context, pod *corev1.Pod, failed string, blocked []string) error {
	was := conditionOf(pod)
	if failed == "" && (was == nil || was.Status != corev1.ConditionTrue) {
		return nil
	}
	next := corev1.PodCondition{Type: BlockedCondition, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(r.Now())}
	status := map[string]any{}
	if failed != "" {
		exit := containerstatus.FindStatus(pod, failed).State.Terminated
		next.Status, next.Reason = corev1.ConditionTrue, ContainerFailedReason
		next.Message = message.Shorten(fmt.Sprintf("Container %s has ended with exit code %d and is not started again, so containers of lower launch priorities do not start: %s.", failed, exit.ExitCode, message.ListNames(blocked)))
		if hasStopped(pod, blocked) {
			status["phase"] = corev1.PodFailed
		}
		if was != nil && was.Status == next.Status && was.Message == next.Message {
			if len(status) == 0 {
				return nil
			}
			next.LastTransitionTime = was.LastTransitionTime
		}
	}
	status["conditions"] = []map[string]any{{
		"type": next.Type, "status": next.Status, "reason": next.Reason, "message": next.Message, "lastTransitionTime": next.LastTransitionTime,
	}}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err == nil {
		err = r.Client.Status().Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
	}
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("writing condition %s of pod %s/%s: %w", BlockedCondition, pod.Namespace, pod.Name, err)
	}
	if failed != "" && (was == nil || was.Message != next.Message) {
		r.Events.Event(pod, corev1.EventTypeWarning, ContainerFailedReason, next.Message)
	}
	return nil
}

func conditionOf(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == BlockedCondition {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
