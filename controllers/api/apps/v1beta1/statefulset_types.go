package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatefulSetSpec stands in until the kind itself is here.
type StatefulSetSpec struct {
	// Replicas is how many pods there should be.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector says which pods are the StatefulSet's.
	Selector *metav1.LabelSelector `json:"selector"`

	// Template of the pods.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`
}
