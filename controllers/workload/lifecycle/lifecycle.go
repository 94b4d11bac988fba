// SPDX-License-Identifier: Apache-2.0

// Package lifecycle moves pods through the states that the hooks of their workload require
//
package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// PodState is the pod's state, "" when it has none.
func PodState(pod *corev1.Pod) kruise.LifecycleStateType {
	return kruise.LifecycleStateType(pod.Labels[kruise.LifecycleStateKey])
}

// IsHooked reports whether the pod has any of a hook's labels and finalizers: the hook holds the pod
// before an update or a deletion.
func IsHooked(hook *kruise.LifecycleHook, pod *corev1.Pod) bool {
	if hook == nil {
		return false
	}
	for _, f := range hook.FinalizersHandler {
		if hasFinalizer(pod, f) {
			return true
		}
	}
	for k, v := range hook.LabelsHandler {
		if got, ok := pod.Labels[k]; ok && got == v {
			return true
		}
	}
	return false
}

// AllHooked reports whether the pod has all of a hook's labels and finalizers: the pod may
// count as normal. The result is false if there is no hook (spec/README.md, 5).
func AllHooked(hook *kruise.LifecycleHook, pod *corev1.Pod) bool {
	if hook == nil {
		return false
	}
	for _, f := range hook.FinalizersHandler {
		if !hasFinalizer(pod, f) {
			return false
		}
	}
	for k, v := range hook.LabelsHandler {
		if got, ok := pod.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func hasFinalizer(pod *corev1.Pod, name string) bool {
	for _, f := range pod.Finalizers {
		if f == name {
			return true
		}
	}
	return false
}

// Facts are what a pod's next state depends on, apart from the pod itself.
type Facts struct {
	// AtTarget is true if the pod has the revision that it is to have.
	AtTarget bool
	// Complete is true when no in-place update is under way.
	Complete bool
}

// WaitsForPreNormal reports whether the preNormal hook prevents a new pod from becoming Normal. Pods
// without that hook are in PreparingNormal too, until they have a node.
func WaitsForPreNormal(pod *corev1.Pod, l *kruise.Lifecycle) bool {
	return PodState(pod) == kruise.LifecycleStatePreparingNormal && l != nil && l.PreNormal != nil && !AllHooked(l.PreNormal, pod)
}

// NextState returns the state that a pod should be in now; the present one if nothing changes
// . It never begins an update or a deletion.
func NextState(pod *corev1.Pod, l *kruise.Lifecycle, f Facts) kruise.LifecycleStateType {
	switch s := PodState(pod); s {
	case kruise.LifecycleStatePreparingNormal:
		if l == nil || l.PreNormal == nil {
			if pod.Spec.NodeName != "" {
				return kruise.LifecycleStateNormal
			}
		} else if AllHooked(l.PreNormal, pod) {
			return kruise.LifecycleStateNormal
		}
		return s
	case kruise.LifecycleStatePreparingUpdate:
		if f.AtTarget { // the user took the update back while the pod waited
			return stateAfterUpdate(pod, l)
		}
		return s
	case kruise.LifecycleStateUpdating:
		if f.Complete {
			return stateAfterUpdate(pod, l)
		}
		return s
	case kruise.LifecycleStateUpdated:
		if l == nil || l.InPlaceUpdate == nil || AllHooked(l.InPlaceUpdate, pod) {
			return kruise.LifecycleStateNormal
		}
		return s
	default:
		return s
	}
}

func stateAfterUpdate(pod *corev1.Pod, l *kruise.Lifecycle) kruise.LifecycleStateType {
	if l != nil && !AllHooked(l.InPlaceUpdate, pod) {
		return kruise.LifecycleStateUpdated
	}
	return kruise.LifecycleStateNormal
}

// Step is the next step for a pod that is to be updated or deleted.
type Step string

const (
	// Go means to update or delete the pod now.
	Go Step = "Go"
	// Wait means that a hook holds the pod.
	Wait Step = "Wait"
	// Prepare means to notify the hook by setting the preparing state.
	Prepare Step = "Prepare"
	// Rehook means to do the same, and to restore the hook's labels and finalizers first: they were
	// removed for the last update.
	Rehook Step = "Rehook"
	// Refuse means that the pod is being deleted.
	Refuse Step = "Refuse"
)

// BeforeUpdate returns the step before an in-place update of the pod.
func BeforeUpdate(pod *corev1.Pod, l *kruise.Lifecycle) Step {
	var hook *kruise.LifecycleHook
	if l != nil {
		hook = l.InPlaceUpdate
	}
	switch PodState(pod) {
	case "", kruise.LifecycleStatePreparingNormal, kruise.LifecycleStateNormal:
		if IsHooked(hook, pod) {
			return Prepare
		}
		return Go
	case kruise.LifecycleStateUpdated:
		if hook == nil {
			return Go
		}
		return Rehook
	case kruise.LifecycleStatePreparingUpdate:
		if IsHooked(hook, pod) {
			return Wait
		}
		return Go
	case kruise.LifecycleStateUpdating:
		return Go
	}
	return Refuse
}

// BeforeDelete returns the step before a deletion of the pod.
func BeforeDelete(pod *corev1.Pod, l *kruise.Lifecycle) Step {
	if l == nil || !IsHooked(l.PreDelete, pod) {
		return Go
	}
	if PodState(pod) == kruise.LifecycleStatePreparingDelete {
		return Wait
	}
	return Prepare
}

// TakeBack returns the next state of a pod whose update is cancelled while the pod prepares for it. It reports
// whether the pod is to change to that state now. It is not while the hook still holds the pod, since the hook is draining it.
func TakeBack(pod *corev1.Pod, l *kruise.Lifecycle) (kruise.LifecycleStateType, bool) {
	if PodState(pod) != kruise.LifecycleStatePreparingUpdate || BeforeUpdate(pod, l) != Go {
		return PodState(pod), false
	}
	return stateAfterUpdate(pod, l), true
}
