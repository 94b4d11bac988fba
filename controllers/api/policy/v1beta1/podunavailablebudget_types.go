// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PodUnavailableBudgetSpec is which pods are protected, and how many of them may be unavailable.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.targetRef)",message="no selector or targetRef defined in PodUnavailableBudget"
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.targetRef)",message="selector and targetRef are mutually exclusive"
// +kubebuilder:validation:XValidation:rule="has(self.maxUnavailable) || has(self.minAvailable)",message="no maxUnavailable or minAvailable defined in PodUnavailableBudget"
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || !has(self.minAvailable)",message="maxUnavailable and minAvailable are mutually exclusive"
// +kubebuilder:validation:XValidation:rule="has(self.targetRef) ? has(oldSelf.targetRef) && self.targetRef == oldSelf.targetRef : !has(oldSelf.targetRef)",message="selector and targetRef cannot be modified"
type PodUnavailableBudgetSpec struct {
	// Selector says which pods of the namespace are protected. Either it or targetRef is set, and neither can be
	// changed.
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="an empty selector is of all pods; say which pods are meant"
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// TargetReference is the workload whose pods are protected. Any workload with a scale subresource will do, and any
	// at all if protectTotalReplicas is set.
	// +optional
	TargetReference *TargetReference `json:"targetRef,omitempty"`

	// MaxUnavailable is how many pods may be unavailable, as a number or as a percentage of all, rounded up. Either it
	// or minAvailable is set.
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^0*(100|[0-9]{1,2})%$')",message="must be a number, 0 or more, or a percentage from 0% to 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MinAvailable is how many pods must stay available, as a number or as a percentage of all, rounded up. All pods
	// are kept if there are no more than that.
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^0*(100|[0-9]{1,2})%$')",message="must be a number, 0 or more, or a percentage from 0% to 100%"
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`

	// ProtectOperations are what the budget is asked about; DELETE, UPDATE and EVICT if empty.
	// +optional
	ProtectOperations []PubOperation `json:"protectOperations,omitempty"`

	// ProtectTotalReplicas is how many pods there are meant to be, at least 1; as many as the workloads of the pods have
	// replicas if unset.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProtectTotalReplicas *int32 `json:"protectTotalReplicas,omitempty"`

	// IgnoredPodSelector takes pods out of the protection, though they still count. It may not be empty.
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="an empty selector is of all pods; say which pods are meant"
	// +optional
	IgnoredPodSelector *metav1.LabelSelector `json:"ignoredPodSelector,omitempty"`
}

// TargetReference names a workload of the namespace. All three fields are needed.
//
// +kubebuilder:validation:XValidation:rule="has(self.apiVersion) && self.apiVersion.matches('^[^/]+(/[^/]+)?$')",message="is required, as v1 or apps/v1",fieldPath=".apiVersion"
// +kubebuilder:validation:XValidation:rule="has(self.kind) && size(self.kind) > 0",message="is required",fieldPath=".kind",reason="FieldValueRequired"
// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="is required",fieldPath=".name",reason="FieldValueRequired"
type TargetReference struct {
	// APIVersion of the workload.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the workload.
	// +optional
	Kind string `json:"kind,omitempty"`

	// Name of the workload.
	// +optional
	Name string `json:"name,omitempty"`
}

// PubOperation is something that makes a pod unavailable.
//
// +kubebuilder:validation:Enum=DELETE;UPDATE;EVICT;RESIZE
type PubOperation string

const (
	// PubDeleteOperation deletes a pod.
	PubDeleteOperation PubOperation = "DELETE"
	// PubUpdateOperation changes a pod's spec, or labels it as unavailable.
	PubUpdateOperation PubOperation = "UPDATE"
	// PubEvictOperation evicts a pod.
	PubEvictOperation PubOperation = "EVICT"
	// PubResizeOperation changes a pod's resources without a restart. It is an UPDATE in a cluster that cannot do that.
	PubResizeOperation PubOperation = "RESIZE"
)

// PodUnavailableBudgetStatus is the observed state of a PodUnavailableBudget.
type PodUnavailableBudgetStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// DisruptedPods are pods that were given leave to go, by name, and when. An entry that is 20 seconds old expires.
	// +optional
	DisruptedPods map[string]metav1.Time `json:"disruptedPods,omitempty"`

	// UnavailablePods are pods that were given leave to be updated, by name, and when. An entry that is 10 seconds old
	// expires.
	// +optional
	UnavailablePods map[string]metav1.Time `json:"unavailablePods,omitempty"`

	// UnavailableAllowed is how many more pods may become unavailable now.
	UnavailableAllowed int32 `json:"unavailableAllowed"`

	// CurrentAvailable is how many pods are available, without those in disruptedPods and unavailablePods.
	CurrentAvailable int32 `json:"currentAvailable"`

	// DesiredAvailable is how many pods must stay available. Nothing is refused if it is 0.
	DesiredAvailable int32 `json:"desiredAvailable"`

	// TotalReplicas is how many pods there are meant to be.
	TotalReplicas int32 `json:"totalReplicas"`

	// Conditions say what the controller met.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodUnavailableBudget limits how many pods of an application are unavailable at once. It refuses deletions, evictions
// and in-place updates that would exceed that limit, regardless of the client that requests them.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=pub
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Allowed",type="integer",JSONPath=".status.unavailableAllowed",description="The number of pods that may become unavailable now."
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.currentAvailable",description="The number of pods available."
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desiredAvailable",description="The number of pods that must stay available."
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.totalReplicas",description="The number of pods there are meant to be."
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PodUnavailableBudgetSpec   `json:"spec,omitempty"`
	Status PodUnavailableBudgetStatus `json:"status,omitempty"`
}

// Hub marks PodUnavailableBudget as the version that all others are converted through.
func (*PodUnavailableBudget) Hub() {}

// PodUnavailableBudgetList is a list of PodUnavailableBudgets.
//
// +kubebuilder:object:root=true
type PodUnavailableBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodUnavailableBudget `json:"items"`
}
