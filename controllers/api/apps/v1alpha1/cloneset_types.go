// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// CloneSetUpdateStrategyType is how a pod is brought to a new template; who starts it was not a choice in v1alpha1.
type CloneSetUpdateStrategyType string

const (
	// RecreateCloneSetUpdateStrategyType deletes the pod and creates another.
	RecreateCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "ReCreate"
	// InPlaceIfPossibleCloneSetUpdateStrategyType changes the pod where the change allows it, and recreates it elsewhere.
	InPlaceIfPossibleCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnlyCloneSetUpdateStrategyType changes the pod and never recreates it.
	InPlaceOnlyCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "InPlaceOnly"
	// OnDeleteCloneSetUpdateStrategyType is what a v1beta1 object of that type shows here. The webhook refuses it from a
	// user who types it, but lets it stand on an object that has it.
	OnDeleteCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "OnDelete"
)

// CloneSetSpec is the desired state of a CloneSet.
type CloneSetSpec struct {
	// Replicas is how many pods there should be; 1 if unset.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector says which pods are the CloneSet's. It must match the labels of the template and cannot be changed.
	Selector *metav1.LabelSelector `json:"selector"`

	// Template of the pods.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template corev1.PodTemplateSpec `json:"template"`

	// VolumeClaimTemplates are claims that every pod gets one of. A claim outlives its pod for the pods that come after
	// it, unless scaleStrategy.disablePVCReuse is set.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// ScaleStrategy says how pods are created and deleted.
	// +optional
	ScaleStrategy CloneSetScaleStrategy `json:"scaleStrategy,omitempty"`

	// UpdateStrategy says how pods are brought to a new template.
	// +optional
	UpdateStrategy CloneSetUpdateStrategy `json:"updateStrategy,omitempty"`

	// RevisionHistoryLimit is how many revisions that no pod runs are kept; 10 if unset.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// MinReadySeconds is how long a pod must be ready before it is available.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Lifecycle holds pods before they are deleted or updated.
	// +optional
	Lifecycle *v1beta1.Lifecycle `json:"lifecycle,omitempty"`

	// ProgressDeadlineSeconds is how long a rollout may make no progress before the condition Progressing says so.
	// Progress is not tracked if unset or 2147483647.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// CloneSetScaleStrategy says how pods are created and deleted.
type CloneSetScaleStrategy struct {
	// PodsToDelete are names of pods to delete. Names of pods that do not exist are removed by the controller.
	// +optional
	PodsToDelete []string `json:"podsToDelete,omitempty"`

	// MaxUnavailable limits how many pods may be unavailable while pods are created, as a number or as a percentage of
	// replicas, rounded up. Unlimited if unset.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// DisablePVCReuse lets a claim go with its pod.
	// +optional
	DisablePVCReuse bool `json:"disablePVCReuse,omitempty"`
}

// CloneSetUpdateStrategy says how pods are brought to a new template.
type CloneSetUpdateStrategy struct {
	// Type is ReCreate, InPlaceIfPossible or InPlaceOnly; ReCreate if unset.
	// +optional
	Type CloneSetUpdateStrategyType `json:"type,omitempty"`

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
	PriorityStrategy *v1beta1.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`

	// ScatterStrategy spreads pods with these labels over the whole update.
	// +optional
	ScatterStrategy v1beta1.CloneSetUpdateScatterStrategy `json:"scatterStrategy,omitempty"`

	// InPlaceUpdateStrategy says how a pod is changed in place. The fields imagePreDownload* are ignored in this
	// version: the annotations of the same names count.
	// +optional
	InPlaceUpdateStrategy *v1beta1.InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// CloneSet runs pods that have no identity of their own, and updates them in place where it can.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=clone
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The desired number of pods."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of pods updated."
// +kubebuilder:printcolumn:name="UPDATED_READY",type="integer",JSONPath=".status.updatedReadyReplicas",description="The number of pods updated and ready."
// +kubebuilder:printcolumn:name="UPDATED_AVAILABLE",type="integer",JSONPath=".status.updatedAvailableReplicas",description="The number of pods updated and available."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of pods ready."
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.replicas",description="The number of all pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since creation."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The containers of the template."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template."
// +kubebuilder:printcolumn:name="SELECTOR",type="string",priority=1,JSONPath=".status.labelSelector",description="The selector of the pods."
type CloneSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CloneSetSpec           `json:"spec,omitempty"`
	Status v1beta1.CloneSetStatus `json:"status,omitempty"`
}

// CloneSetList is a list of CloneSets.
//
// +kubebuilder:object:root=true
type CloneSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CloneSet `json:"items"`
}
