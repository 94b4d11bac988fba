// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceDistributionSpec is the desired state of a ResourceDistribution.
type ResourceDistributionSpec struct {
	// Resource is the whole Secret or ConfigMap. Its apiVersion, kind and name cannot be changed. A change of its metadata
	// alone reaches the copies only with the next change of its data.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Resource runtime.RawExtension `json:"resource"`

	// Targets are the namespaces that get a copy. A copy that is in no target any more is deleted.
	Targets ResourceDistributionTargets `json:"targets"`
}

// ResourceDistributionTargets are namespaces: all of them, or those that a list names and a selector selects, less those
// of another list. Neither kube-system nor kube-public is ever among them.
type ResourceDistributionTargets struct {
	// AllNamespaces takes every namespace. Neither includedNamespaces nor namespaceSelector has an effect then.
	// +optional
	AllNamespaces bool `json:"allNamespaces,omitempty"`

	// IncludedNamespaces takes these namespaces. One that does not exist gets its copy when it does.
	// +optional
	IncludedNamespaces ResourceDistributionTargetNamespaces `json:"includedNamespaces,omitempty"`

	// NamespaceSelector takes namespaces by their labels; none if it is empty.
	// +optional
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// ExcludedNamespaces leaves these namespaces out, whatever the others say. None may be in includedNamespaces, too.
	// +optional
	ExcludedNamespaces ResourceDistributionTargetNamespaces `json:"excludedNamespaces,omitempty"`
}

// ResourceDistributionTargetNamespaces names namespaces.
type ResourceDistributionTargetNamespaces struct {
	// List of the namespaces.
	// +optional
	List []ResourceDistributionNamespace `json:"list,omitempty"`
}

// ResourceDistributionNamespace names a namespace.
type ResourceDistributionNamespace struct {
	// Name of the namespace.
	// +optional
	Name string `json:"name,omitempty"`
}

// ResourceDistributionStatus is the observed state of a ResourceDistribution.
type ResourceDistributionStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Desired is how many namespaces should have a copy.
	// +optional
	Desired int32 `json:"desired,omitempty"`

	// Succeeded is how many of them have it.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// Failed is how many do not.
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// Conditions say what went wrong, one for each kind of failure, always in the same order.
	// +optional
	Conditions []ResourceDistributionCondition `json:"conditions,omitempty"`
}

// ResourceDistributionCondition is one kind of failure.
type ResourceDistributionCondition struct {
	// Type of the condition.
	Type ResourceDistributionConditionType `json:"type"`

	// Status is True if it happened.
	Status corev1.ConditionStatus `json:"status"`

	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`

	// Reason is the last error, in its own words, or Succeeded.
	// +optional
	Reason string `json:"reason,omitempty"`

	// FailedNamespaces are the namespaces where it happened.
	// +optional
	FailedNamespaces []string `json:"failedNamespaces,omitempty"`
}

// ResourceDistribution keeps copies of one Secret or ConfigMap in many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,shortName=distributor
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of namespaces that should have a copy."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of namespaces that have it."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of namespaces that do not."
type ResourceDistribution struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ResourceDistributionSpec   `json:"spec,omitempty"`
	Status ResourceDistributionStatus `json:"status,omitempty"`
}

// Hub marks ResourceDistribution as the version that all others are converted through.
func (*ResourceDistribution) Hub() {}

// ResourceDistributionList is a list of ResourceDistributions.
//
// +kubebuilder:object:root=true
type ResourceDistributionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ResourceDistribution `json:"items"`
}
