// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
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
	// at all with the annotation pub.kruise.io/protect-total-replicas.
	// +optional
	TargetReference *v1beta1.TargetReference `json:"targetRef,omitempty"`

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
}

// PodUnavailableBudget limits how many pods of an application are unavailable at once. It refuses deletions, evictions
// and in-place updates that would exceed that limit, regardless of the client that requests them.
//
// The annotations kruise.io/pub-protect-operations and pub.kruise.io/protect-total-replicas are what
// spec.protectOperations and spec.protectTotalReplicas are in v1beta1.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pub
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Allowed",type="integer",JSONPath=".status.unavailableAllowed",description="The number of pods that may become unavailable now."
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.currentAvailable",description="The number of pods available."
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desiredAvailable",description="The number of pods that must stay available."
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.totalReplicas",description="The number of pods there are meant to be."
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PodUnavailableBudgetSpec           `json:"spec,omitempty"`
	Status v1beta1.PodUnavailableBudgetStatus `json:"status,omitempty"`
}

// PodUnavailableBudgetList is a list of PodUnavailableBudgets.
//
// +kubebuilder:object:root=true
type PodUnavailableBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodUnavailableBudget `json:"items"`
}
