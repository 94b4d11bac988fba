// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RollingUpdateType is how the pod of a node is brought to a new template.
type RollingUpdateType string

const (
	// StandardRollingUpdateType deletes the pod and creates another, in the order that maxUnavailable or maxSurge asks for.
	StandardRollingUpdateType RollingUpdateType = "Standard"
	// InPlaceIfPossibleRollingUpdateType changes the pod where the change allows it, and recreates it elsewhere.
	InPlaceIfPossibleRollingUpdateType RollingUpdateType = "InPlaceIfPossible"
)

// DaemonSetUpdateStrategy says how pods are brought to a new template.
type DaemonSetUpdateStrategy struct {
	// Type is RollingUpdate or OnDelete; RollingUpdate if unset. OnDelete updates a pod when a client deletes it.
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	// +optional
	Type appsv1.DaemonSetUpdateStrategyType `json:"type,omitempty"`

	// RollingUpdate is of type RollingUpdate only.
	// +optional
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty"`
}

// RollingUpdateDaemonSet says how the controller updates pods by and by. Of maxUnavailable and maxSurge exactly one is
// more than 0.
type RollingUpdateDaemonSet struct {
	// Type is Standard or InPlaceIfPossible; Standard if unset. InPlaceIfPossible cannot go with maxSurge.
	// +optional
	Type RollingUpdateType `json:"rollingUpdateType,omitempty"`

	// MaxUnavailable is how many nodes may be without an available pod, as a number or as a percentage of the nodes that
	// should have one, rounded up, at most 100%; 1 if neither this nor maxSurge is set.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MaxSurge is how many nodes may have an old and a new pod at once, as a number or as a percentage of the nodes that
	// should have one, rounded up, at most 100%; 0 if unset. The old pod goes when the new one is available.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// Selector says on which nodes pods are updated, by the labels of the nodes; on all if unset.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Partition is how many nodes keep the old revision, as a number or as a percentage of the nodes that should have a
	// pod, rounded down; 0 if unset.
	// +optional
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// Paused stops the update. Pods still come and go with their nodes.
	// +optional
	Paused *bool `json:"paused,omitempty"`
}
