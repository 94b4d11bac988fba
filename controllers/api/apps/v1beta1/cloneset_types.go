// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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

	// VolumeClaimTemplates are claims that every pod gets one of. A claim lives as long as its pod, unless
	// scaleStrategy.enablePVCReuse is set.
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
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`

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

	// EnablePVCReuse keeps the claims of deleted pods for pods that come after them.
	// +kubebuilder:default=false
	// +optional
	EnablePVCReuse bool `json:"enablePVCReuse,omitempty"`

	// ExcludePreparingDelete leaves pods in PreparingDelete out of the number of replicas.
	// +optional
	ExcludePreparingDelete bool `json:"excludePreparingDelete,omitempty"`
}

// CloneSetStatus is the observed state of a CloneSet.
type CloneSetStatus struct {
	// ObservedGeneration is the generation that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Replicas is how many pods there are.
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is how many of them are ready.
	ReadyReplicas int32 `json:"readyReplicas"`

	// AvailableReplicas is how many have been ready for minReadySeconds, in no lifecycle state that holds them.
	AvailableReplicas int32 `json:"availableReplicas"`

	// UpdatedReplicas is how many are of the update revision.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// UpdatedReadyReplicas is how many are of the update revision and ready.
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`

	// UpdatedAvailableReplicas is how many are of the update revision and available.
	// +optional
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas,omitempty"`

	// ExpectedUpdatedReplicas is how many are meant to be of the update revision: replicas less partition.
	// +optional
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas,omitempty"`

	// UpdateRevision is the revision of the template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// CurrentRevision is the last revision that all pods were of.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// CollisionCount makes names of revisions differ if their hashes do not.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// Conditions say what the controller met.
	// +optional
	Conditions []CloneSetCondition `json:"conditions,omitempty"`

	// LabelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// CloneSetCondition is one thing that the controller met.
type CloneSetCondition struct {
	// Type of the condition.
	Type CloneSetConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastUpdateTime is when the condition was last written.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message in whole sentences.
	// +optional
	Message string `json:"message,omitempty"`
}

// CloneSet runs pods that have no identity of their own, and updates them in place where it can.
//
// Its rules are checked by the admission webhook alone, not by the schema: a cluster may keep the CRD that OpenKruise
// installed, which has none.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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

	Spec   CloneSetSpec   `json:"spec,omitempty"`
	Status CloneSetStatus `json:"status,omitempty"`
}

// Hub marks CloneSet as the version that all others are converted through.
func (*CloneSet) Hub() {}

// CloneSetList is a list of CloneSets.
//
// +kubebuilder:object:root=true
type CloneSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CloneSet `json:"items"`
}
