// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// HasGate reports whether the pod's readiness waits for InPlaceUpdateReady.
func HasGate(pod *corev1.Pod) bool { return hasReadinessGate(pod, kruise.InPlaceUpdateReady) }

// AddGate adds a condition to the readiness gates of a pod, and reports whether it was
// missing.
func AddGate(pod *corev1.Pod, t corev1.PodConditionType) bool {
	if hasReadinessGate(pod, t) {
		return false
	}
	pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: t})
	return true
}

func hasReadinessGate(pod *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == t })
}

// FindCondition finds a condition of the pod, nil if it has none of that type.
func FindCondition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// WantsReady reports whether a gate is still to be opened, of a pod whose update is complete or that
// was never updated (A-07; PA-02 for KruisePodReady, which gets only its first value here).
func WantsReady(pod *corev1.Pod) bool {
	if WantsKruiseReady(pod) {
		return true
	}
	if !HasGate(pod) {
		return false
	}
	c := FindCondition(pod, kruise.InPlaceUpdateReady)
	return c == nil || c.Status != corev1.ConditionTrue || c.Reason != "" || c.Message != ""
}

// WantsKruiseReady reports whether the gate KruisePodReady of a pod was never opened.
func WantsKruiseReady(pod *corev1.Pod) bool {
	return hasReadinessGate(pod, kruise.KruisePodReady) && FindCondition(pod, kruise.KruisePodReady) == nil
}

// HasGateCondition reports whether the gate of a pod was ever opened or closed.
func HasGateCondition(pod *corev1.Pod) bool {
	return FindCondition(pod, kruise.InPlaceUpdateReady) != nil
}

// MarkReady opens the gates, both in one write. edit, which may be nil, changes labels and
// annotations in that write: the API server accepts them with the status. If the gates of the pod
// were opened before, the write fails if the pod has changed since it was read. The first time, it does not: the scheduler and
// the kubelet write to the pod at the same moment, and these writes do not matter.
func (u Updater) MarkReady(ctx context.Context, pod *corev1.Pod, edit func(*corev1.Pod)) (*corev1.Pod, error) {
	version := ""
	if HasGateCondition(pod) {
		version = pod.ResourceVersion
	}
	return u.openGates(ctx, pod, version, edit)
}

func (u Updater) openGates(ctx context.Context, pod *corev1.Pod, version string, edit func(*corev1.Pod)) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	if err := u.setReady(ctx, pod, metav1.ConditionTrue, version, edit); err != nil {
		return nil, err
	}
	return pod, nil
}

// setReady writes InPlaceUpdateReady. With False it sets Ready to False in the same write, so that
// the pod leaves its services before its containers stop; the kubelet sets Ready to True
// again. The merge key is the type, so no other condition changes.
// For a pod without that gate, only KruisePodReady is written. If version is set, the write
// fails if the pod has another one. edit is as for MarkReady.
func (u Updater) setReady(ctx context.Context, pod *corev1.Pod, status metav1.ConditionStatus, version string, edit func(*corev1.Pod)) error {
	now := metav1.NewTime(u.Now())
	conditions := []corev1.PodCondition{{Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionStatus(status), LastTransitionTime: now}}
	if status == metav1.ConditionTrue && !HasGate(pod) {
		conditions = nil
	}
	if status == metav1.ConditionTrue && WantsKruiseReady(pod) {
		conditions = append(conditions, corev1.PodCondition{Type: kruise.KruisePodReady, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	if status == metav1.ConditionFalse {
		conditions[0].Reason = kruise.StartInPlaceUpdateReason
		if ready := FindCondition(pod, corev1.PodReady); ready != nil && ready.Status == corev1.ConditionTrue {
			conditions = append(conditions, corev1.PodCondition{
				Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: now,
				Reason: "ReadinessGatesNotReady", Message: "the pod is being updated in place",
			})
		}
	}
	patches := make([]map[string]any, len(conditions))
	for i, c := range conditions {
		patches[i] = map[string]any{
			"type": c.Type, "status": c.Status, "lastTransitionTime": c.LastTransitionTime,
			"reason": c.Reason, "message": c.Message,
		}
	}
	metadata := map[string]any{"uid": pod.UID}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	if edit != nil {
		edited := pod.DeepCopy()
		edit(edited)
		metadata["labels"], metadata["annotations"] = changedEntries(pod.Labels, edited.Labels), changedEntries(pod.Annotations, edited.Annotations)
	}
	raw, err := json.Marshal(map[string]any{
		"metadata": metadata,
		"status":   map[string]any{"conditions": patches},
	})
	if err != nil {
		return fmt.Errorf("encoding conditions of pod %s: %w", pod.Name, err)
	}
	if err := u.Client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, raw)); err != nil {
		return fmt.Errorf("setting %s=%s on pod %s: %w", kruise.InPlaceUpdateReady, status, pod.Name, err)
	}
	return nil
}

// changedEntries returns the entries of after that before does not have, or has with another value.
func changedEntries(before, after map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range after {
		if was, ok := before[k]; !ok || was != v {
			out[k] = v
		}
	}
	return out
}
