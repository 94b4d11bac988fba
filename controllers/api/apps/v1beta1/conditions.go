// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadConditionType is the type of a condition of a StatefulSet or a DaemonSet.
type WorkloadConditionType string

// The conditions that the library kstatus reads, and so Flux, Helm and kubectl wait. They come behind all others, and are ours.
const (
	// ConditionReady is True when the object is what its spec says, and False otherwise, for the reason of one of the other two.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the object is not what its spec says, and may become it without a change. Else it is absent.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while the object is not what its spec says, and does not become it without a change. Else it is absent.
	ConditionStalled = "Stalled"

	// PodsAvailableReason is the reason of Ready when all pods of a workload are available, and those that are to be updated are.
	PodsAvailableReason = "PodsAvailable"
	// ProgressingReason is the reason of Reconciling while pods are created, deleted or updated, or become available. A failure or
	// a hold has the type of its condition as the reason.
	ProgressingReason = "Progressing"
	// ObservedReason is the reason of Ready of a kind without progress of its own, once its controller acts by the newest spec.
	ObservedReason = "Observed"
	// TargetNotFoundReason is the reason of Ready of an object whose workload does not exist yet: there is nothing to wait for.
	TargetNotFoundReason = "TargetNotFound"
)

// The condition of workloads whose update a policy holds, and its reasons that come from no policy.
const (
	// UpdateHeld is the type of the condition, and the reason of the event that reports a new hold. It is ours.
	UpdateHeld = "UpdateHeld"
	// NotHeldReason is the reason of the condition while it is False.
	NotHeldReason = "NotHeld"
	// ScaleHeldReason is the reason of the event while a policy holds the scaling.
	ScaleHeldReason = "ScaleHeld"
)

// WorkloadCondition is one thing that the controller of a StatefulSet or a DaemonSet met. It is the condition of the
// native kinds, but type and status must be there.
type WorkloadCondition struct {
	// Type of the condition.
	Type WorkloadConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message in whole sentences.
	// +optional
	Message string `json:"message,omitempty"`
}

// JobConditionType is the type of a condition of a BroadcastJob or an EphemeralJob.
type JobConditionType string

// JobCondition is one thing that happened to a BroadcastJob or an EphemeralJob.
type JobCondition struct {
	// Type of the condition.
	Type JobConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastProbeTime is when the condition was last looked at.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message in whole sentences.
	// +optional
	Message string `json:"message,omitempty"`
}
