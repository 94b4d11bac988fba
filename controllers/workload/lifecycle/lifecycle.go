// SPDX-License-Identifier: Apache-2.0

// Package lifecycle leads pods through the states of their workload's hooks
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

// IsHooked reports whether any of a hook's marks is on the pod: it holds the pod
// back before an update or a delete.
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

// AllHooked reports whether all of a hook's marks are on the pod: the pod may
// count as normal. No hook is not all hooked (spec/README.md, 5).
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

// Facts are what a pod's next state depends on besides the pod.
type Facts struct {
	// AtTarget is true at the revision the pod is to have.
	AtTarget bool
	// Complete is true when no in-place update is under way.
	Complete bool
}

// WaitsForPreNormal reports whether the preNormal hook keeps a new pod from state Normal. Pods
// without that hook are in PreparingNormal too, until they have a node.
func WaitsForPreNormal(pod *corev1.Pod, l *kruise.Lifecycle) bool {
	return PodState(pod) == kruise.LifecycleStatePreparingNormal && l != nil && l.PreNormal != nil && !AllHooked(l.PreNormal, pod)
}

// NextState is the state a pod should be in now, its own when nothing changes
// . It never starts anything.
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
		if f.AtTarget { // the user went back while the pod waited
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

// Step is what to do with a pod that is to be updated or deleted.
type Step string

const (
	// Go means do it.
	Go Step = "Go"
	// Wait means a hook holds the pod.
	Wait Step = "Wait"
	// Prepare means tell the hook by the preparing state.
	Prepare Step = "Prepare"
	// Rehook means tell it, and put the hook's marks back first: they were
	// taken off for the last update.
	Rehook Step = "Rehook"
	// Refuse means the pod is on its way out.
	Refuse Step = "Refuse"
)

// BeforeUpdate says how an in-place update of the pod starts.
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

// BeforeDelete says how a delete of the pod starts.
func BeforeDelete(pod *corev1.Pod, l *kruise.Lifecycle) Step {
	if l == nil || !IsHooked(l.PreDelete, pod) {
		return Go
	}
	if PodState(pod) == kruise.LifecycleStatePreparingDelete {
		return Wait
	}
	return Prepare
}

// TakeBack is the state of a pod whose update is called off while it prepares for it. It says
// whether the pod is to go there: not before its hook has let go, as that drains it.
func TakeBack(pod *corev1.Pod, l *kruise.Lifecycle) (kruise.LifecycleStateType, bool) {
	if PodState(pod) != kruise.LifecycleStatePreparingUpdate || BeforeUpdate(pod, l) != Go {
		return PodState(pod), false
	}
	return stateAfterUpdate(pod, l), true
}
