// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CloneSetUpdateStrategyType is who starts the update of a pod.
type CloneSetUpdateStrategyType string

const (
	// RollingUpdateCloneSetUpdateStrategyType lets the controller update pods by and by.
	RollingUpdateCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "RollingUpdate"
	// OnDeleteCloneSetUpdateStrategyType updates a pod when a client deletes it.
	OnDeleteCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "OnDelete"
)

// PodUpdatePolicyType is how a pod is brought to a new template.
type PodUpdatePolicyType string

const (
	// RecreatePodUpdatePolicyType deletes the pod and creates another.
	RecreatePodUpdatePolicyType PodUpdatePolicyType = "ReCreate"
	// InPlaceIfPossiblePodUpdatePolicyType changes the pod where the change allows it, and recreates it elsewhere.
	InPlaceIfPossiblePodUpdatePolicyType PodUpdatePolicyType = "InPlaceIfPossible"
	// InPlaceOnlyPodUpdatePolicyType changes the pod and never recreates it.
	InPlaceOnlyPodUpdatePolicyType PodUpdatePolicyType = "InPlaceOnly"
)

// DefaultCloneSetMaxUnavailable is used if maxUnavailable is unset.
const DefaultCloneSetMaxUnavailable = "20%"

// CloneSetUpdateStrategy says how pods are brought to a new template.
type CloneSetUpdateStrategy struct {
	// Type is RollingUpdate or OnDelete; RollingUpdate if unset.
	// +optional
	Type CloneSetUpdateStrategyType `json:"type,omitempty"`

	// RollingUpdate is of type RollingUpdate only.
	// +optional
	RollingUpdate *RollingUpdateCloneSetStrategy `json:"rollingUpdate,omitempty"`
}

// RollingUpdateCloneSetStrategy says how the controller updates pods by and by.
type RollingUpdateCloneSetStrategy struct {
	// PodUpdatePolicy is ReCreate, InPlaceIfPossible or InPlaceOnly; ReCreate if unset.
	// +optional
	PodUpdatePolicy PodUpdatePolicyType `json:"podUpdatePolicy,omitempty"`

	// Partition is how many pods stay at the old revision, as a number or as a percentage of replicas, rounded up;
	// 0 if unset. A percentage below 100% never keeps all of several pods.
	// +optional
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// MaxUnavailable is how many pods may be unavailable, as a number or as a percentage of replicas; 20% if unset.
	// It is rounded up, but down if maxSurge is more than 0.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MaxSurge is how many pods there may be above replicas while pods are updated or deleted on request, as a number
	// or as a percentage of replicas, rounded up; 0 if unset.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// Paused stops the update. Scaling goes on.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// PriorityStrategy says which pods come first.
	// +optional
	PriorityStrategy *UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`

	// ScatterStrategy spreads pods with these labels over the whole update.
	// +optional
	ScatterStrategy CloneSetUpdateScatterStrategy `json:"scatterStrategy,omitempty"`

	// InPlaceUpdateStrategy says how a pod is changed in place.
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// UpdatePriorityStrategy says which pods come first: by weight or by order, not both.
type UpdatePriorityStrategy struct {
	// OrderPriority compares the value of the first of these labels that a pod has.
	// +optional
	OrderPriority []UpdatePriorityOrderTerm `json:"orderPriority,omitempty"`

	// WeightPriority adds up the weights of the terms that match a pod; more comes first.
	// +optional
	WeightPriority []UpdatePriorityWeightTerm `json:"weightPriority,omitempty"`
}

// UpdatePriorityOrderTerm names a label whose value ends with a number; a larger number comes first.
type UpdatePriorityOrderTerm struct {
	// OrderedKey is the key of the label.
	OrderedKey string `json:"orderedKey"`
}

// UpdatePriorityWeightTerm is a weight for the pods it selects.
type UpdatePriorityWeightTerm struct {
	// Weight from 0 to 100.
	Weight int32 `json:"weight"`
	// MatchSelector selects pods.
	MatchSelector metav1.LabelSelector `json:"matchSelector"`
}

// CloneSetUpdateScatterStrategy are labels whose pods are spread over the whole update.
type CloneSetUpdateScatterStrategy []CloneSetUpdateScatterTerm

// CloneSetUpdateScatterTerm is one label.
type CloneSetUpdateScatterTerm struct {
	// Key of the label.
	Key string `json:"key"`
	// Value of the label.
	Value string `json:"value"`
}

// InPlaceUpdateStrategy says how a pod is changed in place.
type InPlaceUpdateStrategy struct {
	// GracePeriodSeconds is the time between taking a pod out of its services and changing it.
	// +optional
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`

	// ImagePreDownloadParallelism is on how many nodes an image is pulled at once before the update; 1 if unset.
	// A percentage is refused.
	// +optional
	ImagePreDownloadParallelism *intstr.IntOrString `json:"imagePreDownloadParallelism,omitempty"`

	// ImagePreDownloadTimeoutSeconds is how long one pull may take; 300 if unset.
	// +optional
	ImagePreDownloadTimeoutSeconds *int32 `json:"imagePreDownloadTimeoutSeconds,omitempty"`

	// ImagePreDownloadMinUpdatedReadyPods is how many pods must be updated and ready before images are pulled.
	// +optional
	ImagePreDownloadMinUpdatedReadyPods *int32 `json:"imagePreDownloadMinUpdatedReadyPods,omitempty"`
}
