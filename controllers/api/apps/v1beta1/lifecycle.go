// SPDX-License-Identifier: Apache-2.0

package v1beta1

// LifecycleStateType is where a pod stands in the life that its workload leads it through.
type LifecycleStateType string

// The states of a pod, kept in LifecycleStateKey. A pod in any other state than none or Normal is unavailable.
const (
	LifecycleStatePreparingNormal LifecycleStateType = "PreparingNormal"
	LifecycleStateNormal          LifecycleStateType = "Normal"
	LifecycleStatePreparingUpdate LifecycleStateType = "PreparingUpdate"
	LifecycleStateUpdating        LifecycleStateType = "Updating"
	LifecycleStateUpdated         LifecycleStateType = "Updated"
	LifecycleStatePreparingDelete LifecycleStateType = "PreparingDelete"
)

// Lifecycle lets another controller stop a pod before it changes state.
type Lifecycle struct {
	// PreDelete holds a pod back before it is deleted.
	// +optional
	PreDelete *LifecycleHook `json:"preDelete,omitempty"`
	// InPlaceUpdate holds a pod back before it is updated in place, and again after it.
	// +optional
	InPlaceUpdate *LifecycleHook `json:"inPlaceUpdate,omitempty"`
	// PreNormal holds a new pod back before it counts as available.
	// +optional
	PreNormal *LifecycleHook `json:"preNormal,omitempty"`
}

// LifecycleHook names the marks on a pod that hold it. Before a delete or an update any one of them holds the pod;
// after an update, and before Normal, the pod is held until all of them are there.
type LifecycleHook struct {
	// LabelsHandler holds by labels with these values.
	// +optional
	LabelsHandler map[string]string `json:"labelsHandler,omitempty"`
	// FinalizersHandler holds by finalizers.
	// +optional
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`
	// MarkPodNotReady takes the pod out of its services while it is PreparingDelete or PreparingUpdate.
	// It has no effect in preNormal.
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`
}
