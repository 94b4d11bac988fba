// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

const (
	// KruisePodReady is a readiness gate that several writers hold together: True only if none holds it.
	KruisePodReady corev1.PodConditionType = "KruisePodReady"

	// LifecycleUserAgent writes KruisePodReady with the keys of the hooks that have markPodNotReady.
	LifecycleUserAgent = "Lifecycle"
	// PreDeleteHookKey holds KruisePodReady from PreparingDelete on.
	PreDeleteHookKey = "preDeleteHook"
	// PreUpdateHookKey holds KruisePodReady from PreparingUpdate until Updated.
	PreUpdateHookKey = "preUpdateHook"
)

// PodReadinessMessage is one entry of the JSON list in the message of the condition KruisePodReady: who holds the pod
// not ready, and for what.
type PodReadinessMessage struct {
	UserAgent string `json:"userAgent"`
	Key       string `json:"key"`
}
